/**
 * The messages of a session, from its system prompt to its last answer.
 *
 * A log for assistive technology, but a silent one: what changes is told by the status line, not
 * token by token. Scrolling is `Reading`'s decision; this view only reports and obeys.
 */

import "./transcript_view.css";

import { useEffect, useMemo, useRef } from "preact/hooks";

import type { App } from "../app";
import type { OpenSession } from "../chat/open_session";
import { t } from "../i18n/catalogue";
import { Reading } from "../reading/reading";
import type { Entry } from "../chat/entries";
import { AnswerView } from "./answer_view";
import { DownIcon } from "./icons";
import { StoredSystemPrompt } from "./stored_system_prompt";
import { UserView } from "./user_view";

export function TranscriptView({ app, session }: { app: App; session: OpenSession }) {
  const box = useRef<HTMLDivElement>(null);
  const reading = useMemo(() => new Reading(), [session]);
  const entries = session.entries.value;
  const isLive = app.connection.isLive;
  useFollowing(reading, box, entries.length);
  useTarget(session, reading, box);
  return (
    <div class="transcript-frame">
      <div
        class="transcript"
        role="log"
        aria-live="off"
        aria-label={t("session.transcript")}
        tabIndex={0}
        ref={box}
      >
        <div class="column">
          <StoredSystemPrompt text={session.systemPrompt.value} onToggle={() => reading.rest()} />
          {entries.map((entry, index) => (
            <EntryView
              key={entry.key}
              app={app}
              entry={entry}
              isLive={isLive}
              isLast={index === entries.length - 1}
            />
          ))}
        </div>
      </div>
      {!reading.isFollowing.value && (
        <button
          type="button"
          class="outlined latest"
          onClick={() => box.current && reading.followNow(box.current)}
        >
          <DownIcon /> {t("session.latest")}
        </button>
      )}
    </div>
  );
}

interface EntryViewProps {
  app: App;
  entry: Entry;
  isLive: boolean;
  isLast: boolean;
}

function EntryView({ app, entry, isLive, isLast }: EntryViewProps) {
  if (entry.kind === "user") return <UserView app={app} entry={entry} />;
  return <AnswerView app={app} entry={entry} isLive={isLive} isLast={isLast} />;
}

/** Connect the scroll box to `reading`; a new message of the reader's own is followed. */
function useFollowing(
  reading: Reading,
  box: { readonly current: HTMLDivElement | null },
  numEntries: number,
): void {
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const signals = new AbortController();
    const options = { signal: signals.signal, passive: true };
    const on = element.addEventListener.bind(element);
    on("wheel", (event) => reading.onWheel((event as WheelEvent).deltaY, element), options);
    on("touchstart", (event) => reading.onTouchStart(touchY(event as TouchEvent)), options);
    on("touchmove", (event) => reading.onTouchMove(touchY(event as TouchEvent), element), options);
    on("keydown", (event) => reading.onKey((event as KeyboardEvent).key), options);
    on("scroll", () => reading.onScroll(element), options);
    const sizes = new ResizeObserver(() => reading.onResize(element));
    sizes.observe(element);
    for (const child of element.children) sizes.observe(child);
    return () => {
      signals.abort();
      sizes.disconnect();
    };
  }, [reading]);
  useEffect(() => {
    if (box.current !== null) reading.followNow(box.current);
  }, [reading, numEntries]);
}

/** Bring the message that the reader asked for into view, and stay there. */
function useTarget(
  session: OpenSession,
  reading: Reading,
  box: { readonly current: HTMLDivElement | null },
): void {
  const key = session.target.value;
  useEffect(() => {
    if (key === null) return;
    const message = box.current?.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (message == null) return;
    reading.rest();
    message.scrollIntoView({ block: "start" });
    session.target.value = null;
  }, [session, key, session.entries.value]);
}

function touchY(event: TouchEvent): number {
  return event.touches[0]?.clientY ?? 0;
}
