/** What stands below a message that the reader has begun to say otherwise and left. */

import type { App } from "../app";
import { t } from "../i18n/catalogue";
import { placeOfEdit } from "../input/places";

export function BegunEdit({ app, messageKey }: { app: App; messageKey: string }) {
  const session = app.current.value;
  const place = placeOfEdit(session.id.value, session.nameOf(messageKey));
  if (app.unsent.isEmpty(place)) return null;
  return (
    <p class="begun-edit">
      {t("unsent.edit")}
      <button type="button" class="outlined" onClick={() => (session.editing.value = messageKey)}>
        {t("unsent.goOn")}
      </button>
      <button type="button" class="outlined" onClick={() => app.unsent.clear(place)}>
        {t("unsent.discard")}
      </button>
    </p>
  );
}
