/**
 * A message while it is being said otherwise. What stands there already stays on its own branch, and
 * what is written here is kept when the editor closes; see `useEditedMessage`.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";

import { t } from "../i18n/catalogue";
import { EnterGuard, isComposing } from "../input/enter_guard";
import { largePaste } from "../input/large_paste";
import { isTouch } from "../input/send_key";
import { isMac } from "../keys/commands";
import { focusComposer } from "./focus";

interface MessageEditorProps {
  label: string;
  hint: string;
  submit: string;
  /** What keeps the message from being sent just now, if anything. */
  submitProps?: { disabled: boolean };
  text: string;
  /** What goes with the text; with it, the text may be empty. */
  attached?: ComponentChildren;
  onChange: (text: string) => void;
  onLargePaste?: (text: string) => void;
  onSubmit: () => void;
  onClose: () => void;
}

export function MessageEditor(props: MessageEditorProps) {
  const { text, attached, onChange, onLargePaste, onSubmit, onClose } = props;
  const id = useId();
  const guard = useMemo(() => new EnterGuard(), []);
  const area = useRef<HTMLTextAreaElement>(null);
  const isHeldBack = props.submitProps?.disabled ?? false;
  const canSubmit = !isHeldBack && (text.trim() !== "" || attached !== undefined);
  useEffect(() => {
    const element = area.current;
    element?.focus();
    element?.setSelectionRange(text.length, text.length);
  }, []);
  const finish = () => {
    if (!canSubmit) return;
    onSubmit();
    onClose();
    focusComposer();
  };
  const onPaste = (event: ClipboardEvent) => {
    const long = onLargePaste === undefined ? null : largePaste(event);
    if (long === null) return;
    event.preventDefault();
    onLargePaste?.(long);
  };
  return (
    <form
      class="message-editor"
      onSubmit={(event) => (event.preventDefault(), finish())}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || isComposing(event)) return;
        event.preventDefault();
        onClose();
      }}
    >
      {attached}
      <textarea
        ref={area}
        aria-label={props.label}
        aria-describedby={id}
        value={text}
        onInput={(event) => onChange(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (!(event.ctrlKey || event.metaKey) || !guard.isSend(event)) return;
          event.preventDefault();
          finish();
        }}
        onPaste={onPaste}
        onCompositionEnd={(event) => guard.onCompositionEnd(event.timeStamp)}
      />
      <div class="message-editor-foot">
        <small id={id}>
          {props.hint} {!isTouch() && t("message.editKeys", { key: submitKey(), action: props.submit })}
        </small>
        <button type="button" class="outlined" onClick={onClose}>
          {t("common.cancel")}
        </button>
        <button type="submit" class="outlined primary" {...props.submitProps} disabled={!canSubmit}>
          {props.submit}
        </button>
      </div>
    </form>
  );
}

function submitKey(): string {
  return isMac() ? "⌘+Enter" : t("message.editKey");
}
