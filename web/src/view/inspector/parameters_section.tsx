/** A control for each sampling field that the model is described with. */

import type { App } from "../../app";
import { t } from "../../i18n/catalogue";
import { ParameterControl } from "./parameter_control";

export function ParametersSection({ app }: { app: App }) {
  const session = app.current.value;
  const { parameters } = session;
  const { fields: changed } = parameters.choices.value;
  const described = app.next.model.value?.["chatserve:sampling"] ?? [];
  const { value: problem } = parameters.problem;
  return (
    <details class="inspector-part" open>
      <summary>
        <h3>{t("inspector.parameters")}</h3>
      </summary>
      {problem !== null && <p class="obstacle">{problem}</p>}
      {described.map((field) => (
        <ParameterControl
          key={`${session.key} ${field.name}`}
          field={field}
          changed={changed}
          onChange={(value) => parameters.setField(field.name, value)}
          onReset={() => parameters.resetField(field.name)}
        />
      ))}
      {Object.keys(changed).length > 1 && (
        <button type="button" class="outlined" onClick={() => parameters.resetFields()}>
          {t("parameter.resetAll")}
        </button>
      )}
    </details>
  );
}
