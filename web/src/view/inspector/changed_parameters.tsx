/** What a new chat does not leave at its defaults, in one line, and the way back to them. */

import "./changed_parameters.css";

import type { App } from "../../app";
import { plural, t } from "../../i18n/catalogue";
import { changedFields } from "../../parameters/sampling";
import { labelOf, valueWords } from "../../parameters/written_values";

export function ChangedParameters({ app }: { app: App }) {
  const { parameters } = app.current.value;
  const described = app.next.model.value?.["chatserve:sampling"] ?? [];
  const { fields } = parameters.choices.value;
  const [first, ...others] = changedFields(described, fields);
  const value = first && fields[first.name];
  if (first === undefined || value === undefined) return null;
  const words = `${labelOf(first.name)} ${valueWords(value)}`;
  return (
    <p class="changed-parameters">
      {others.length === 0 ? words : plural("parameter.andMore", others.length, { words })}
      <button type="button" class="outlined" onClick={() => parameters.resetFields()}>
        {t("parameter.reset")}
      </button>
    </p>
  );
}
