/** A message while it is being said otherwise. What stands there already stays on its own branch. */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";

import { t } from "../i18n/catalogue";
import { EnterGuard } from "../input/enter_guard";

interface MessageEditorProps {
  label: string;
  hint: string;
  submit: string;
  text: string;
  onSubmit: (text: string) => void;
  onClose: () => void;
}

export function MessageEditor({ label, hint, submit, text, onSubmit, onClose }: MessageEditorProps) {
  const guard = useMemo(() => new EnterGuard(), []);
  const area = useRef<HTMLTextAreaElement>(null);
  const draft = useSignal(text);
  const canSubmit = draft.value.trim() !== "";
  useEffect(() => {
    const element = area.current;
    element?.focus();
    element?.setSelectionRange(text.length, text.length);
  }, []);
  const finish = () => {
    if (!canSubmit) return;
    onSubmit(draft.value);
    onClose();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && !event.isComposing) {
      // This Escape closes the editor; it does not stop an answer.
      event.stopPropagation();
      onClose();
    } else if ((event.ctrlKey || event.metaKey) && guard.isSend(event)) {
      event.preventDefault();
      finish();
    }
  };
  return (
    <form class="message-editor" onSubmit={(event) => (event.preventDefault(), finish())}>
      <textarea
        ref={area}
        aria-label={label}
        dir="auto"
        value={draft.value}
        onInput={(event) => (draft.value = event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onCompositionEnd={(event) => guard.onCompositionEnd(event.timeStamp)}
      />
      <div class="message-editor-foot">
        <small>{hint}</small>
        <button type="button" class="outlined" onClick={onClose}>
          {t("common.cancel")}
        </button>
        <button type="submit" class="outlined primary" disabled={!canSubmit}>
          {submit}
        </button>
      </div>
    </form>
  );
}
