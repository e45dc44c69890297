/** The offer to take back what was just deleted. */

import "./undo_bar.css";

import type { App } from "../app";
import { t } from "../i18n/catalogue";
import type { LeftRemoval } from "../sessions/left_removals";
import { focusComposer } from "./focus";

export function UndoBar({ app }: { app: App }) {
  const { undo } = app;
  const offer = undo.offer.value;
  const title = offer && titleElsewhere(app, offer.target);
  const problem = undo.problem.value;
  const takeBack = () => {
    undo.undo();
    focusComposer();
  };
  return (
    <div class="undo-bar" role="status">
      {offer !== null && (
        <p>
          <span>
            {title !== null && <bdi>{title}: </bdi>}
            {offer.words}
          </span>
          <button type="button" class="outlined" onClick={takeBack}>
            {t("common.undo")}
          </button>
        </p>
      )}
      {offer === null && problem !== null && <p class="undo-problem">{problem}</p>}
    </div>
  );
}

/** Return in which conversation a message was deleted, where the reader looks at something else. */
function titleElsewhere({ place, current, list }: App, target: LeftRemoval | null): string | null {
  if (target === null || target.itemId === null) return null;
  const { sessionId } = target;
  if (place.value.kind === "chat" && current.value.id.value === sessionId) return null;
  return list.sessions.value.find(({ id }) => id === sessionId)?.title || t("session.untitled");
}
