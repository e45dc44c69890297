/**
 * One sampling field: its control, what it does, its default, and what is wrong with what is written.
 *
 * Made from the field's description alone. What is written and is no value stays where it is written,
 * with the reason below it; the value that was in use before stays in use.
 */

import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";

import { t } from "../../i18n/catalogue";
import { defaultOf, problemOf, type SamplingValues } from "../../parameters/sampling";
import {
  conflictOf,
  defaultWords,
  formatValue,
  labelOf,
  meaningOf,
  parseValue,
  sliderOf,
  valueWords,
} from "../../parameters/written_values";
import type { WireSamplingField, WireSamplingValue } from "../../wire/protocol";

interface ParameterControlProps {
  field: WireSamplingField;
  /** The values of all fields that are not left at their defaults. */
  changed: SamplingValues;
  onChange: (value: WireSamplingValue) => void;
  onReset: () => void;
}

export function ParameterControl({ field, changed, onChange, onReset }: ParameterControlProps) {
  const id = useId();
  /** What is written while it is written, and for as long as it is no value. */
  const draft = useSignal<string | null>(null);
  const label = labelOf(field.name);
  const value = changed[field.name];
  const problem = draft.value === null ? null : problemOfText(field, draft.value, changed);
  const write = (text: string) => {
    draft.value = text;
    const parsed = parseValue(field, text);
    if (parsed === undefined) onReset();
    else if (parsed !== null && problemOfText(field, text, changed) === null) onChange(parsed);
  };
  const reset = () => {
    draft.value = null;
    onReset();
  };
  const leave = () => {
    if (problem === null) draft.value = null;
  };
  return (
    <div class="parameter">
      <div class="parameter-head">
        <label for={id}>{label}</label>
        {(value !== undefined || problem !== null) && (
          <button
            type="button"
            class="quiet"
            aria-label={t("parameter.resetNamed", { name: label })}
            onClick={reset}
          >
            {t("parameter.reset")}
          </button>
        )}
      </div>
      {field.type === "boolean" ? (
        <input
          id={id}
          type="checkbox"
          aria-describedby={`${id}-about`}
          checked={(value ?? defaultOf(field)) === true}
          onChange={({ currentTarget }) => onChange(currentTarget.checked)}
        />
      ) : (
        <WrittenValue
          id={id}
          field={field}
          text={draft.value ?? (value === undefined ? "" : formatValue(value))}
          value={value ?? defaultOf(field)}
          isWrong={problem !== null}
          onText={write}
          onLeave={leave}
        />
      )}
      {problem !== null && (
        <p class="parameter-problem" id={`${id}-problem`}>
          {problem} {t("parameter.stays", { value: stayingWords(field, value) })}
        </p>
      )}
      <p class="parameter-about" id={`${id}-about`}>
        {meaningOf(field.name)} {t("parameter.default", { value: defaultWords(field) })}
      </p>
    </div>
  );
}

interface WrittenValueProps {
  id: string;
  field: WireSamplingField;
  text: string;
  value: WireSamplingValue | null;
  isWrong: boolean;
  onText: (text: string) => void;
  onLeave: () => void;
}

function WrittenValue({ id, field, text, value, isWrong, onText, onLeave }: WrittenValueProps) {
  const common = {
    id,
    value: text,
    "aria-invalid": isWrong,
    "aria-describedby": isWrong ? `${id}-problem ${id}-about` : `${id}-about`,
    onBlur: onLeave,
  };
  if (field.type === "strings" || field.type === "integers") {
    return (
      <textarea
        {...common}
        rows={1}
        placeholder={t(field.type === "strings" ? "parameter.lines" : "parameter.ids")}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
    );
  }
  const slider = sliderOf(field);
  return (
    <div class="parameter-number">
      {slider !== null && (
        <input
          type="range"
          {...slider}
          aria-label={labelOf(field.name)}
          value={Number(value ?? slider.min)}
          onInput={({ currentTarget }) => onText(formatValue(currentTarget.valueAsNumber))}
          onChange={onLeave}
        />
      )}
      <input
        {...common}
        type="text"
        inputMode={field.type === "number" ? "decimal" : "text"}
        autocomplete="off"
        placeholder={formatValue(defaultOf(field))}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
    </div>
  );
}

/** Return what is wrong with a text as the value of a field, or null; nothing at all is right. */
function problemOfText(
  field: WireSamplingField,
  text: string,
  changed: SamplingValues,
): string | null {
  const value = parseValue(field, text);
  if (value === undefined) return null;
  if (value === null) return t("choice.problem.number");
  return problemOf(field, value) ?? conflictOf(field.name, value, changed);
}

function stayingWords(field: WireSamplingField, value: WireSamplingValue | undefined): string {
  return value === undefined ? defaultWords(field) : valueWords(value);
}
