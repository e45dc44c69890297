/** What a new chat does not leave at its defaults, in one line, and the way back to them. */

import "./changed_parameters.css";

import type { App } from "../../app";
import { plural, t } from "../../i18n/catalogue";
import { changedFields } from "../../parameters/sampling";
import { formatValue, labelOf } from "../../parameters/written_values";
import type { WireSamplingValue } from "../../wire/protocol";

export function ChangedParameters({ app }: { app: App }) {
  const { parameters } = app.current.value;
  const described = app.next.model.value?.["chatserve:sampling"] ?? [];
  const { fields } = parameters.choices.value;
  const [first, ...others] = changedFields(described, fields);
  const value = first && fields[first.name];
  if (first === undefined || value === undefined) return null;
  const words = `${labelOf(first.name)} ${wordsOf(value)}`;
  return (
    <p class="changed-parameters">
      {others.length === 0 ? words : plural("parameter.andMore", others.length, { words })}
      <button type="button" class="outlined" onClick={() => parameters.resetFields()}>
        {t("parameter.reset")}
      </button>
    </p>
  );
}

function wordsOf(value: WireSamplingValue): string {
  if (typeof value === "boolean") return t(value ? "parameter.on" : "parameter.off");
  return formatValue(value);
}
