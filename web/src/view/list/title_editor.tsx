/** The title of a session while it is changed: Enter keeps the new one, Esc and leaving do not. */

import { useEffect, useMemo, useRef } from "preact/hooks";

import { t } from "../../i18n/catalogue";
import { EnterGuard, isComposing } from "../../input/enter_guard";

interface TitleEditorProps {
  title: string;
  onSubmit: (title: string) => void;
  onClose: () => void;
}

const maxLength = 200;

export function TitleEditor({ title, onSubmit, onClose }: TitleEditorProps) {
  const guard = useMemo(() => new EnterGuard(), []);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Escape" && !isComposing(event)) {
      event.preventDefault();
      onClose();
    } else if (guard.isSend(event)) {
      const renamed = field.current?.value.trim() ?? "";
      if (renamed !== "" && renamed !== title) onSubmit(renamed);
      onClose();
    }
  };
  return (
    <input
      ref={field}
      class="title-editor"
      aria-label={t("list.rename")}
      dir="auto"
      maxLength={maxLength}
      defaultValue={title}
      onKeyDown={onKeyDown}
      onCompositionEnd={(event) => guard.onCompositionEnd(event.timeStamp)}
      onBlur={onClose}
    />
  );
}
