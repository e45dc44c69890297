/**
 * The messages of a session, from its system prompt to its last answer.
 *
 * A log for assistive technology, but a silent one: what changes is told by the status line, not
 * token by token. Scrolling is `Reading`'s decision; this view only reports and obeys.
 */

import "./transcript_view.css";

import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";

import type { App } from "../app";
import type { OpenSession } from "../chat/open_session";
import { t } from "../i18n/catalogue";
import { EntryWindow } from "../reading/entry_window";
import { Reading } from "../reading/reading";
import type { Entry } from "../chat/entries";
import { AnswerView } from "./answer_view";
import { DownIcon } from "./icons";
import { StoredSystemPrompt } from "./stored_system_prompt";
import { UserView } from "./user_view";

type Box = { readonly current: HTMLDivElement | null };

export function TranscriptView({ app, session }: { app: App; session: OpenSession }) {
  const box = useRef<HTMLDivElement>(null);
  const reading = useMemo(() => new Reading(), [session]);
  const drawn = useMemo(() => new EntryWindow(), [session]);
  const entries = session.entries.value;
  const isLive = app.connection.isLive;
  const start = drawn.startOf(entries);
  const hasEarlier = start > 0 || session.hasEarlier.value;
  useFollowing(session, reading, box);
  useKeptPlace(reading, box, start);
  useTarget(session, reading, drawn, box);
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
          {hasEarlier ? (
            <Earlier key={start} box={box} onNear={() => drawn.extend()} />
          ) : (
            <StoredSystemPrompt text={session.systemPrompt.value} onToggle={() => reading.rest()} />
          )}
          {entries.slice(start).map((entry, index) => (
            <EntryView
              key={entry.key}
              app={app}
              entry={entry}
              isLive={isLive}
              isLast={start + index === entries.length - 1}
              onUnfold={() => reading.rest()}
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
  onUnfold: () => void;
}

function EntryView({ app, entry, isLive, isLast, onUnfold }: EntryViewProps) {
  if (entry.kind === "user") return <UserView app={app} entry={entry} onUnfold={onUnfold} />;
  return <AnswerView app={app} entry={entry} isLive={isLive} isLast={isLast} />;
}

interface EarlierProps {
  box: Box;
  onNear: () => void;
}

/** What stands for the messages that are not drawn yet: it draws more when the reader comes near. */
function Earlier({ box, onNear }: EarlierProps) {
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (button.current === null) return;
    const options = { root: box.current, rootMargin: "100% 0px 0px 0px" };
    const nearness = new IntersectionObserver((seen) => {
      if (seen.some(({ isIntersecting }) => isIntersecting)) onNear();
    }, options);
    nearness.observe(button.current);
    return () => nearness.disconnect();
  }, []);
  return (
    <button type="button" class="quiet" ref={button} onClick={onNear}>
      {t("session.earlier")}
    </button>
  );
}

/** Connect the scroll box to `reading`; what the reader asks for is followed. */
function useFollowing(session: OpenSession, reading: Reading, box: Box): void {
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const signals = new AbortController();
    const options = { signal: signals.signal, passive: true };
    const on = element.addEventListener.bind(element);
    on("wheel", (event) => reading.onWheel((event as WheelEvent).deltaY, element), options);
    on("touchstart", (event) => reading.onTouchStart(touchY(event as TouchEvent)), options);
    on("touchmove", (event) => reading.onTouchMove(touchY(event as TouchEvent), element), options);
    on("keydown", (event) => {
      if (!isTextField(event.target)) reading.onKey((event as KeyboardEvent).key, element);
    }, options);
    // Only what lies beside the content, such as the scrollbar, is the box itself.
    on("pointerdown", ({ target }) => {
      if (target === element) reading.onHold();
    }, options);
    addEventListener("pointerup", () => reading.onRelease(), options);
    on("scroll", () => reading.onScroll(element), options);
    on("scrollend", () => reading.onScrollEnd(), options);
    // Another branch has another height; the message that it begins with stays where it is.
    on("click", ({ target }) => {
      if ((target as Element).closest(".siblings") !== null) reading.rest();
    });
    const sizes = new ResizeObserver(() => reading.onResize(element));
    sizes.observe(element);
    for (const child of element.children) sizes.observe(child);
    return () => {
      signals.abort();
      sizes.disconnect();
    };
  }, [reading]);
  const asked = session.asked.value;
  useEffect(() => {
    if (asked !== null && box.current !== null) reading.followNow(box.current);
  }, [reading, asked]);
}

/** Keep what the reader looks at in its place when earlier messages are drawn above it. */
function useKeptPlace(reading: Reading, box: Box, start: number): void {
  const before = useRef({ start, fromEnd: 0 });
  const element = box.current;
  if (element !== null) before.current.fromEnd = element.scrollHeight - element.scrollTop;
  useLayoutEffect(() => {
    const isExtended = start < before.current.start;
    before.current.start = start;
    if (!isExtended || box.current === null || reading.isFollowing.peek()) return;
    box.current.scrollTop = box.current.scrollHeight - before.current.fromEnd;
    reading.onMoved(box.current);
  }, [start]);
}

/** Bring the message that the reader asked for into view, and stay there. */
function useTarget(session: OpenSession, reading: Reading, drawn: EntryWindow, box: Box): void {
  const key = session.target.value;
  const entries = session.entries.value;
  useEffect(() => {
    if (key === null) return;
    const index = entries.findIndex((entry) => entry.key === key);
    if (index >= 0 && index < drawn.startOf(entries)) drawn.reach(index);
  }, [session, key, entries]);
  useEffect(() => {
    if (key === null) return;
    const message = box.current?.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (message == null) return;
    reading.rest();
    message.scrollIntoView({ block: "start" });
    session.target.value = null;
  });
}

function touchY(event: TouchEvent): number {
  return event.touches[0]?.clientY ?? 0;
}

function isTextField(target: EventTarget | null): boolean {
  return (target as Element).matches("textarea, input");
}
