/**
 * Where the reader writes: a plain text area that grows, what is attached, and one button that sends
 * or stops. Long pastes and files of text are attached; see `Unsent`.
 */

import "./composer.css";

import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";

import type { App } from "../app";
import type { OpenSession } from "../chat/open_session";
import { t } from "../i18n/catalogue";
import { EnterGuard } from "../input/enter_guard";
import { largePaste } from "../input/large_paste";
import { isTouch, sends } from "../input/send_key";
import { offeredTypes } from "../input/text_file";
import { useFileDrop } from "./file_drop";
import { focusComposer } from "./focus";
import { ClipIcon, SendIcon, StopIcon } from "./icons";
import { lazyView } from "./lazy_view";

const AttachmentChips = lazyView(async () => (await import("./attachment_chips")).AttachmentChips);

interface ComposerProps {
  app: App;
  /** Whose message this is; the composer of a new chat takes the focus. */
  session: OpenSession;
  /** The id of the element that says what stands in the way. */
  describedBy: string | undefined;
  isReady: boolean;
  /** The reader wants to send, and something stands in the way. */
  onHindered: () => void;
}

const growsByItself = CSS.supports("field-sizing", "content");
const maxRows = 12;

export function Composer({ app, session, describedBy, isReady, onHindered }: ComposerProps) {
  const guard = useMemo(() => new EnterGuard(), []);
  const area = useRef<HTMLTextAreaElement>(null);
  const { drafts, unsent, settings } = app;
  const sessionId = session.id.value;
  const text = drafts.of(sessionId);
  const attachments = unsent.attachmentsOf(sessionId);
  const isRunning = session.running.value !== null;
  const canSend =
    !isRunning && isReady && !unsent.isLoading.value && !unsent.isEmpty(sessionId);
  useEffect(() => {
    if (session.id.value === null && !isTouch()) area.current?.focus();
  }, [session]);
  const hasBegun = session.entries.value.length > 0;
  useEffect(() => {
    // What the reader pressed to begin is gone, and took the focus along.
    const hasFocus = document.activeElement !== document.body;
    if (hasBegun && !hasFocus && !isTouch()) area.current?.focus();
  }, [hasBegun]);
  const isDropping = useFileDrop((files) => void app.attachFiles(files));

  /** Where the reader wanted to send before the page could; it does so as soon as it can. */
  const early = useRef<OpenSession | null>(null);
  const isHindered = describedBy !== undefined;
  const send = () => {
    if (!isReady) onHindered();
    if (!isReady && !isHindered && !isRunning) early.current = session;
    if (!canSend) return;
    void app.sendDraft();
    if (!isTouch()) area.current?.focus();
  };
  useEffect(() => {
    // What stands in the way may last: by then the reader may not want it any more.
    if (isHindered) early.current = null;
    if (!canSend || early.current !== session) return;
    early.current = null;
    send();
  }, [canSend, session, isHindered]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (!sends(event, guard, settings.enterSends.value && !isTouch())) return;
    event.preventDefault();
    send();
  };
  const onPaste = (event: ClipboardEvent) => {
    const long = largePaste(event);
    const files = event.clipboardData?.files ?? [];
    if (long !== null) unsent.attachText(sessionId, long);
    else if (files.length > 0) void app.attachFiles(files);
    else return;
    event.preventDefault();
  };

  return (
    <form
      class={isDropping.value ? "composer dropping" : "composer"}
      onSubmit={(event) => (event.preventDefault(), send())}
    >
      {isDropping.value && <p class="drop-words">{t("attachment.drop")}</p>}
      {attachments.length > 0 && (
        <AttachmentChips
          attachments={attachments}
          onRemove={(attachment) => {
            unsent.detach(sessionId, attachment);
            area.current?.focus();
          }}
          onInline={(attachment) => {
            unsent.inline(sessionId, attachment);
            area.current?.focus();
          }}
        />
      )}
      <div class="composer-line">
        <FileButton onFiles={(files) => void app.attachFiles(files)} />
        <textarea
          id="composer"
          ref={area}
          aria-label={t("composer.label")}
          aria-describedby={describedBy}
          placeholder={t("composer.label")}
          rows={growsByItself ? 1 : rowsOf(text)}
          value={text}
          onInput={(event) => {
            early.current = null;
            drafts.set(sessionId, event.currentTarget.value);
          }}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
          onCompositionEnd={(event) => guard.onCompositionEnd(event.timeStamp)}
        />
        {isRunning ? (
          <StopButton onStop={() => session.stop()} />
        ) : (
          <button
            key="send"
            type="submit"
            class="round accent"
            aria-label={t("composer.send")}
            disabled={!canSend}
            onClick={(event) => isSecondOfTwo(event) && event.preventDefault()}
          >
            <SendIcon />
          </button>
        )}
      </div>
    </form>
  );
}

function StopButton({ onStop }: { onStop: () => void }) {
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => () => {
    if (document.activeElement === button.current) focusComposer();
  }, []);
  return (
    <button
      ref={button}
      type="button"
      class="round"
      aria-label={t("composer.stop")}
      title={t("composer.stopHint")}
      onClick={(event) => isSecondOfTwo(event) || onStop()}
    >
      <StopIcon />
    </button>
  );
}

/** Send and Stop take each other's place, and a double click on one means nothing to the other. */
function isSecondOfTwo({ detail: numClicks }: MouseEvent): boolean {
  return numClicks === 2;
}

function FileButton({ onFiles }: { onFiles: (files: readonly File[]) => void }) {
  const field = useRef<HTMLInputElement>(null);
  const take = (input: HTMLInputElement) => {
    // The list empties with the field, so that the same file can be chosen again.
    const files = [...(input.files ?? [])];
    input.value = "";
    onFiles(files);
  };
  return (
    <>
      <button
        type="button"
        class="quiet attach"
        aria-label={t("attachment.add")}
        title={t("attachment.add")}
        onClick={() => field.current?.click()}
      >
        <ClipIcon />
      </button>
      <input
        ref={field}
        class="visually-hidden"
        type="file"
        multiple
        accept={offeredTypes}
        aria-hidden="true"
        tabIndex={-1}
        onChange={(event) => take(event.currentTarget)}
      />
    </>
  );
}

function rowsOf(text: string): number {
  return Math.min(maxRows, text.split("\n", maxRows).length);
}
