/** The offer to take back what was just deleted. */

import "./undo_bar.css";

import { t } from "../i18n/catalogue";
import type { Undo } from "../undo";

export function UndoBar({ undo }: { undo: Undo }) {
  const offer = undo.offer.value;
  const problem = undo.problem.value;
  return (
    <div class="undo-bar" role="status">
      {offer !== null && (
        <p>
          {offer.words}
          <button type="button" class="outlined" onClick={() => undo.undo()}>
            {t("common.undo")}
          </button>
        </p>
      )}
      {offer === null && problem !== null && <p class="undo-problem">{problem}</p>}
    </div>
  );
}
