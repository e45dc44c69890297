/** Which of several messages in one place is shown, and the way to the others: ‹ 2/3 ›. */

import type { App } from "../app";
import type { Entry } from "../chat/entries";
import { t } from "../i18n/catalogue";
import { focusMessage } from "./focus";
import { NextIcon, PreviousIcon } from "./icons";

export function SiblingSwitch({ app, entry }: { app: App; entry: Entry }) {
  const total = entry.siblings.length;
  if (total < 2) return null;
  const place = entry.siblings.indexOf(entry.key) + 1;
  const step = (by: -1 | 1) => {
    const chosen = entry.siblings[place - 1 + by];
    app.current.value.chooseSibling(entry, by);
    if (chosen !== undefined) focusMessage(chosen);
  };
  return (
    <div class="siblings" role="group" aria-label={t("message.branches")}>
      <button
        type="button"
        class="quiet"
        aria-label={t("message.previousBranch")}
        title={t("message.previousBranch")}
        disabled={place === 1}
        onClick={() => step(-1)}
      >
        <PreviousIcon />
      </button>
      <span>
        {place}/{total}
      </span>
      <button
        type="button"
        class="quiet"
        aria-label={t("message.nextBranch")}
        title={t("message.nextBranch")}
        disabled={place === total}
        onClick={() => step(1)}
      >
        <NextIcon />
      </button>
    </div>
  );
}
