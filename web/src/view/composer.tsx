/**
 * Where the reader writes: a plain text area that grows, one button that sends or stops.
 *
 * Enter sends, except while an input method composes and on touch screens, where it makes a line.
 */

import "./composer.css";

import { useEffect, useMemo, useRef } from "preact/hooks";

import { t } from "../i18n/catalogue";
import { EnterGuard } from "../input/enter_guard";
import type { OpenSession } from "../chat/open_session";
import { SendIcon, StopIcon } from "./icons";

interface ComposerProps {
  /** Whose message this is; the composer of a new chat takes the focus. */
  session: OpenSession;
  text: string;
  /** The id of the element that says what stands in the way. */
  describedBy: string | undefined;
  isRunning: boolean;
  isReady: boolean;
  onText: (text: string) => void;
  onSend: () => void;
  onStop: () => void;
}

const growsByItself = CSS.supports("field-sizing", "content");
const maxRows = 12;

export function Composer(props: ComposerProps) {
  const { session, text, isRunning, isReady, onText, onSend, onStop } = props;
  const guard = useMemo(() => new EnterGuard(), []);
  const area = useRef<HTMLTextAreaElement>(null);
  const canSend = !isRunning && isReady && text.trim() !== "";
  useEffect(() => {
    if (session.id.value === null && !isTouch()) area.current?.focus();
  }, [session]);

  const send = () => {
    if (canSend) onSend();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (isTouch() || !guard.isSend(event)) return;
    event.preventDefault();
    send();
  };

  return (
    <form class="composer" onSubmit={(event) => (event.preventDefault(), send())}>
      <textarea
        ref={area}
        aria-label={t("composer.label")}
        aria-describedby={props.describedBy}
        placeholder={t("composer.label")}
        dir="auto"
        rows={growsByItself ? 1 : rowsOf(text)}
        value={text}
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onCompositionEnd={(event) => guard.onCompositionEnd(event.timeStamp)}
      />
      {isRunning ? (
        <button type="button" class="round" aria-label={t("composer.stop")} title={t("composer.stopHint")} onClick={onStop}>
          <StopIcon />
        </button>
      ) : (
        <button type="submit" class="round accent" aria-label={t("composer.send")} disabled={!canSend}>
          <SendIcon />
        </button>
      )}
    </form>
  );
}

function isTouch(): boolean {
  return matchMedia("(pointer: coarse)").matches;
}

function rowsOf(text: string): number {
  return Math.min(maxRows, text.split("\n", maxRows).length);
}
