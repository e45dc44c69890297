/** Taking all sessions out, and taking sessions in. */

import { useRef } from "preact/hooks";

import type { App } from "../../app";
import { t } from "../../i18n/catalogue";
import { exportName } from "../../sessions/export_name";
import { exportUrl } from "../../wire/api";
import { DownloadIcon, UploadIcon } from "../icons";

export function ListTools({ app }: { app: App }) {
  const field = useRef<HTMLInputElement>(null);
  const { importing } = app;
  const take = async (input: HTMLInputElement) => {
    const file = input.files?.[0];
    // What was deleted just now is to come back, and must not count as there already.
    app.undo.finish();
    if (file !== undefined) await importing.take(file);
    input.value = "";
  };
  return (
    <div class="list-tools">
      <a href={exportUrl(null)} download={exportName(null, new Date())}>
        <DownloadIcon /> {t("list.exportAll")}
      </a>
      <button
        type="button"
        class="quiet"
        disabled={importing.isBusy.value}
        onClick={() => field.current?.click()}
      >
        <UploadIcon /> {t("list.import")}
      </button>
      <input
        ref={field}
        hidden
        type="file"
        accept="application/json,.json"
        aria-label={t("list.import")}
        onChange={(event) => void take(event.currentTarget)}
      />
      <p class="note" role="status">
        {importing.outcome.value}
      </p>
    </div>
  );
}
