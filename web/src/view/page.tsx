/** The whole page: list, header, transcript or empty state, composer. */

import "./page.css";

import { useEffect, useRef } from "preact/hooks";

import type { App } from "../app";
import { formatMoment, t } from "../i18n/catalogue";
import { oversizeWords } from "../input/message_size";
import type { LoadState, OpenSession } from "../chat/open_session";
import { Composer } from "./composer";
import { EmptyState } from "./empty_state";
import { Header } from "./header";
import { CloseIcon } from "./icons";
import { LazyView } from "./lazy_view";
import { LoginForm } from "./login_form";
import { Sidebar } from "./list/sidebar";
import { StatusLine } from "./status_line";
import { TranscriptView } from "./transcript_view";
import { UndoBar } from "./undo_bar";

export function Page({ app }: { app: App }) {
  const sheet = useRef<HTMLDialogElement>(null);
  const { isListShown, isInspectorShown } = app.layout;
  const { kind } = app.place.value;
  useShortcuts(app);
  if (app.login.isNeeded.value) return <LoginForm login={app.login} />;
  return (
    <div class="page" data-list={isListShown.value} data-inspector={isInspectorShown.value}>
      <div class="rail">
        <Sidebar app={app} onChoose={() => undefined} />
      </div>
      <dialog class="sheet" ref={sheet} aria-label={t("list.label")}>
        <button
          type="button"
          class="quiet close"
          aria-label={t("common.close")}
          onClick={() => sheet.current?.close()}
        >
          <CloseIcon />
        </button>
        <Sidebar app={app} onChoose={() => sheet.current?.close()} />
      </dialog>
      <main>
        <Header app={app} onMenu={() => sheet.current?.showModal()} />
        {kind === "chat" && <Chat app={app} />}
        {kind === "cache" && <LazyView key="cache" load={loadCacheView} props={{ app }} />}
        {kind === "operator" && <LazyView key="operator" load={loadOperatorView} props={{ app }} />}
        <StatusLine app={app} />
        <UndoBar undo={app.undo} />
      </main>
      {isInspectorShown.value && (
        <aside class="inspector-panel" aria-label={t("header.inspector")}>
          <LazyView load={loadInspector} props={{ app }} />
        </aside>
      )}
    </div>
  );
}

const loadCacheView = async () => (await import("./cache/cache_view")).CacheView;
const loadOperatorView = async () => (await import("./operator/operator_view")).OperatorView;
const loadInspector = async () => (await import("./inspector/inspector")).Inspector;

function Chat({ app }: { app: App }) {
  const session = app.current.value;
  return (
    <>
      <Content app={app} session={session} />
      <Composing app={app} session={session} />
    </>
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
  return <EmptyState app={app} session={session} />;
}

function LoadNotice({ app, session, load }: SessionProps & { load: LoadState }) {
  const sessionId = session.id.value;
  if (load.kind === "loading") return <p class="notice quiet-notice">{t("session.loading")}</p>;
  if (load.kind === "missing") {
    return (
      <div class="notice">
        <p>{t("session.missing")}</p>
        <button type="button" class="outlined" onClick={() => app.newChat()}>
          {t("list.newChat")}
        </button>
      </div>
    );
  }
  return (
    <div class="notice">
      <p>{load.kind === "failed" && load.message}</p>
      {sessionId !== null && (
        <button type="button" class="outlined" onClick={() => void session.open(sessionId)}>
          {t("common.retry")}
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
  const obstacle = obstacleOf(app, session) ?? oversizeWords(text, app.connection.maxMessageBytes.value);
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

function obstacleOf(app: App, session: OpenSession): string | null {
  const seenAtMs = session.running.value === null ? session.seenAtMs.value : null;
  if (seenAtMs !== null) return t("composer.lastSeen", { time: formatMoment(seenAtMs) });
  const { kind } = app.connection.state.value;
  if (kind === "offline") return t("composer.offline");
  if (app.connection.isLost.value) return t("connection.lost");
  return app.offer.problem.value ?? app.choiceProblem.value;
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
      } else if (isCommand && event.key === ".") {
        event.preventDefault();
        app.layout.toggleInspector();
      } else if (isCommand && event.key.toLowerCase() === "b") {
        event.preventDefault();
        app.layout.toggleList();
      }
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [app]);
}

function hasOpenDialog(): boolean {
  return document.querySelector("dialog[open]") !== null;
}
