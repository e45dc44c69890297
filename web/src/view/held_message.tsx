/** A message that came back while something else was being written: it waits beside the composer. */

import type { App } from "../app";
import { beginningOf } from "../characters";
import { t } from "../i18n/catalogue";
import { placeOfHeld } from "../input/places";

const maxChars = 80;

export function HeldMessage({ app, sessionId }: { app: App; sessionId: string | null }) {
  const { unsent } = app;
  const place = placeOfHeld(sessionId);
  if (unsent.isEmpty(place)) return null;
  const [first] = unsent.attachmentsOf(place);
  const words = app.drafts.of(place).trim() || first?.name || "";
  return (
    <div class="held-message" role="group" aria-label={t("unsent.held")}>
      <p>
        {t("unsent.held")} <q dir="auto">{shortened(words)}</q>
      </p>
      <button type="button" class="outlined" onClick={() => unsent.release(sessionId)}>
        {t("unsent.release")}
      </button>
      <button type="button" class="outlined" onClick={() => unsent.clear(place)}>
        {t("unsent.discard")}
      </button>
    </div>
  );
}

function shortened(text: string): string {
  return text.length > maxChars ? `${beginningOf(text, maxChars)}…` : text;
}
