/** A button that copies a text and says for a moment that it did. */

import { useSignal } from "@preact/signals";

import { copyText } from "../clipboard";
import { t } from "../i18n/catalogue";
import { CheckIcon, CopyIcon } from "./icons";

const noticeMs = 1_500;
const words = { idle: "common.copy", copied: "common.copied", failed: "common.copyFailed" } as const;

export function CopyButton({ label, text }: { label: string; text: () => string }) {
  const state = useSignal<keyof typeof words>("idle");
  const copy = async () => {
    state.value = (await copyText(text())) ? "copied" : "failed";
    setTimeout(() => (state.value = "idle"), noticeMs);
  };
  return (
    <button type="button" class="quiet copy" aria-label={label} onClick={() => void copy()}>
      {state.value === "copied" ? <CheckIcon /> : <CopyIcon />}
      <span aria-hidden="true">{t(words[state.value])}</span>
    </button>
  );
}
