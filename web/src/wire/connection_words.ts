/** What the page says of its connection. */

import { t } from "../i18n/catalogue";
import type { ConnectionState } from "./connection";

export function connectionWords(state: ConnectionState, nowMs: number): string {
  switch (state.kind) {
    case "refused":
      return t("connection.refused", { reason: state.reason });
    case "reconnecting":
      return t("connection.reconnecting", {
        seconds: Math.max(1, Math.ceil((state.retryAtMs - nowMs) / 1_000)),
      });
    default:
      return t(`connection.${state.kind}`);
  }
}
