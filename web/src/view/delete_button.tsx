/** The button that deletes a message with what follows it; it can be had back for a moment. */

import type { App } from "../app";
import { t } from "../i18n/catalogue";
import { focusComposer } from "./focus";
import { BinIcon } from "./icons";

export function DeleteButton({ app, messageKey }: { app: App; messageKey: string }) {
  const remove = () => {
    app.deleteMessage(messageKey);
    // The button is gone with its message.
    focusComposer();
  };
  return (
    <button
      type="button"
      class="quiet"
      aria-label={t("message.delete")}
      title={t("message.delete")}
      onClick={remove}
    >
      <BinIcon />
    </button>
  );
}
