/** The whole page: list, header, transcript or empty state, composer. */

import "./page.css";

import { useEffect, useRef } from "preact/hooks";

import type { App } from "../app";
import { oversizeWords } from "../input/message_size";
import type { LoadState, OpenSession } from "../chat/open_session";
import { lostWords } from "../words";
import { Composer } from "./composer";
import { EmptyState } from "./empty_state";
import { Header } from "./header";
import { CloseIcon } from "./icons";
import { LoginForm } from "./login_form";
import { Sidebar } from "./sidebar";
import { StatusLine } from "./status_line";
import { TranscriptView } from "./transcript_view";

export function Page({ app }: { app: App }) {
  const sheet = useRef<HTMLDialogElement>(null);
  const session = app.current.value;
  useShortcuts(app);
  if (app.login.isNeeded.value) return <LoginForm login={app.login} />;
  return (
    <div class="page">
      <div class="rail">
        <Sidebar app={app} onChoose={() => undefined} />
      </div>
      <dialog class="sheet" ref={sheet} aria-label="Conversations">
        <button
          type="button"
          class="quiet close"
          aria-label="Close"
          onClick={() => sheet.current?.close()}
        >
          <CloseIcon />
        </button>
        <Sidebar app={app} onChoose={() => sheet.current?.close()} />
      </dialog>
      <main>
        <Header app={app} onMenu={() => sheet.current?.showModal()} />
        <Content app={app} session={session} />
        <Composing app={app} session={session} />
        <StatusLine app={app} />
      </main>
    </div>
  );
}

interface SessionProps {
  app: App;
  session: OpenSession;
}

function Content({ app, session }: SessionProps) {
  const load = session.load.value;
  if (load.kind !== "ready") return <LoadNotice app={app} session={session} load={load} />;
  if (session.entries.value.length > 0) {
    return <TranscriptView app={app} session={session} />;
  }
  return (
    <EmptyState
      model={app.model.value}
      systemPrompt={session.systemPrompt}
      isStored={session.id.value !== null}
      onExample={(text) => void app.send(text)}
    />
  );
}

function LoadNotice({ app, session, load }: SessionProps & { load: LoadState }) {
  const sessionId = session.id.value;
  if (load.kind === "loading") return <p class="notice quiet-notice">Loading</p>;
  if (load.kind === "missing") {
    return (
      <div class="notice">
        <p>There is no such conversation. It may have been deleted, or the address is wrong.</p>
        <button type="button" class="outlined" onClick={() => app.newChat()}>
          New chat
        </button>
      </div>
    );
  }
  return (
    <div class="notice">
      <p>{load.kind === "failed" && load.message}</p>
      {sessionId !== null && (
        <button type="button" class="outlined" onClick={() => void session.open(sessionId)}>
          Retry
        </button>
      )}
    </div>
  );
}

/** The composer, with what stands in its way below it; absent where there is nothing to answer. */
function Composing({ app, session }: SessionProps) {
  const { kind } = session.load.value;
  if (kind === "missing" || kind === "failed") return null;
  const sessionId = session.id.value;
  const text = app.drafts.of(sessionId);
  const obstacle = obstacleOf(app) ?? oversizeWords(text, app.connection.maxMessageBytes.value);
  return (
    <div class="column composer-column">
      <Composer
        session={session}
        text={text}
        describedBy={obstacle === null ? undefined : "obstacle"}
        isRunning={session.running.value !== null}
        isReady={kind === "ready" && obstacle === null}
        onText={(next) => app.drafts.set(sessionId, next)}
        onSend={() => void app.sendDraft()}
        onStop={() => session.stop()}
      />
      {obstacle !== null && (
        <p class="obstacle" id="obstacle">
          {obstacle}
        </p>
      )}
    </div>
  );
}

function obstacleOf(app: App): string | null {
  const { kind } = app.connection.state.value;
  if (kind === "offline") return "You are offline. What was loaded can be read.";
  return app.connection.isLost.value ? lostWords : app.serviceProblem.value;
}

function useShortcuts(app: App): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isCommand = event.ctrlKey || event.metaKey;
      if (event.key === "Escape" && !event.isComposing && !hasOpenDialog()) {
        app.current.value.stop();
      } else if (isCommand && event.shiftKey && event.key.toLowerCase() === "o") {
        event.preventDefault();
        app.newChat();
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [app]);
}

function hasOpenDialog(): boolean {
  return document.querySelector("dialog[open]") !== null;
}
