/** Why no answer can be asked for in the conversation on the screen, whatever it would be to. */

import type { App } from "../app";
import { formatMoment, t } from "../i18n/catalogue";

/** Where the reason stands, for what is out of use to refer to. */
export const obstacleId = "obstacle";

/** Return what keeps a button that asks for an answer from being pressed in vain, and tells why. */
export function askingProps(app: App) {
  const obstacle = obstacleOf(app);
  return obstacle === null
    ? { disabled: false }
    : { disabled: true, title: obstacle, "aria-describedby": obstacleId };
}

/** Return it in a sentence; null while nothing stands in the way. */
export function obstacleOf(app: App): string | null {
  const session = app.current.value;
  const seenAtMs = session.running.value === null ? session.seenAtMs.value : null;
  if (seenAtMs !== null) return t("composer.lastSeen", { time: formatMoment(seenAtMs) });
  const { kind } = app.connection.state.value;
  if (kind === "offline") return t("composer.offline");
  if (app.connection.isLost.value) return t("connection.lost");
  return app.offer.problem.value ?? app.next.problem.value;
}
