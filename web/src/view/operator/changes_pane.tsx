/** How an operator changes what this page only shows: the commands for it, to be copied. */

import { Fragment } from "preact";

import { t } from "../../i18n/catalogue";
import { changes } from "../../operator/changes";
import { CopyButton } from "../copy_button";

export function ChangesPane() {
  return (
    <section class="pane changes" aria-labelledby="changes-heading">
      <div class="pane-head">
        <h2 id="changes-heading">{t("operator.changes")}</h2>
        <p>{t("operator.changesWhere")}</p>
      </div>
      <ul>
        {changes.map(({ name, command }) => (
          <li key={name}>
            <div>
              <code>
                {command.split(" ").map((word) => (
                  <Fragment key={word}>
                    <span>{word}</span>{" "}
                  </Fragment>
                ))}
              </code>
              <CopyButton label={t("operator.copyCommand", { command })} text={() => command} />
            </div>
            <p>{t(`operator.change.${name}`)}</p>
          </li>
        ))}
      </ul>
    </section>
  );
}
