/** The whole page: list, header, transcript or empty state, composer. */

import "./page.css";

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { App } from "../app";
import { t } from "../i18n/catalogue";
import { oversizeWords } from "../input/message_size";
import { isTouch } from "../input/send_key";
import { listenToKeys } from "../keys/commands";
import type { LoadState } from "../chat/load_state";
import type { OpenSession } from "../chat/open_session";
import { useMarkdown } from "./answer_text";
import { Composer } from "./composer";
import { Dialog, Sheet } from "./dialog";
import { Header } from "./header";
import { HeldMessage } from "./held_message";
import { lazyView } from "./lazy_view";
import { obstacleId, obstacleOf } from "./obstacle";
import { Sidebar } from "./list/sidebar";
import { StatusLine } from "./status_line";
import { TranscriptView } from "./transcript_view";
import { UndoBar } from "./undo_bar";

export const EmptyState = lazyView(async () => (await import("./empty_state")).EmptyState);
const LoginForm = lazyView(async () => (await import("./login_form")).LoginForm);
const CacheView = lazyView(async () => (await import("./cache/cache_view")).CacheView);
const OperatorView = lazyView(async () => (await import("./operator/operator_view")).OperatorView);
const SettingsDialog = lazyView(
  async () => (await import("./settings/settings_dialog")).SettingsDialog,
);
const KeysList = lazyView(async () => (await import("./settings/keys_list")).KeysList);
const Inspector = lazyView(async () => (await import("./inspector/inspector")).Inspector);

export function Page({ app }: { app: App }) {
  const { kind } = app.place.value;
  const isLoginNeeded = app.login.isNeeded.value;
  useEffect(() => (isLoginNeeded ? undefined : listenToKeys(app)), [app, isLoginNeeded]);
  if (isLoginNeeded) return <LoginForm login={app.login} />;
  return (
    <div class="page">
      <ListPanel app={app} />
      <main>
        <Header app={app} />
        {kind === "chat" && <Chat app={app} />}
        {kind === "cache" && <CacheView app={app} />}
        {kind === "operator" && <OperatorView app={app} />}
        <StatusLine app={app} />
        <UndoBar app={app} />
      </main>
      <InspectorPanel app={app} />
      <Dialogs app={app} />
    </div>
  );
}

function ListPanel({ app }: { app: App }) {
  const { layout } = app;
  const close = () => layout.closeSheet();
  if (!layout.isListShown.value) return null;
  if (!layout.isNarrow.value) {
    return (
      <div class="rail">
        <Sidebar app={app} onChoose={close} />
      </div>
    );
  }
  return (
    <Sheet label={t("list.label")} edge="start" onClose={close}>
      <Sidebar app={app} onChoose={close} />
    </Sheet>
  );
}

function InspectorPanel({ app }: { app: App }) {
  const { layout } = app;
  // It is about a conversation; beside another view it would only take its room.
  if (app.place.value.kind !== "chat" || !layout.isInspectorShown.value) return null;
  const inspector = <Inspector app={app} />;
  if (!layout.isNarrow.value) {
    return (
      <aside class="inspector-panel" aria-label={t("header.inspector")}>
        {inspector}
      </aside>
    );
  }
  return (
    <Sheet label={t("header.inspector")} edge="end" onClose={() => layout.closeSheet()}>
      {inspector}
    </Sheet>
  );
}

function Dialogs({ app }: { app: App }) {
  const { layout } = app;
  const name = layout.dialog.value;
  if (name === null) return null;
  return (
    <Dialog key={name} label={t(`header.${name}`)} onClose={() => layout.closeDialog()}>
      {name === "settings" && <SettingsDialog app={app} />}
      {name === "keys" && <KeysList enterSends={app.settings.enterSends.value && !isTouch()} />}
    </Dialog>
  );
}

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
  if (app.isDeleted.value) return <DeletedNotice app={app} session={session} />;
  if (load.kind !== "ready") return <LoadNotice session={session} load={load} />;
  if (session.entries.value.length > 0) {
    return <TranscriptView app={app} session={session} />;
  }
  return <EmptyState app={app} session={session} />;
}

function LoadNotice({ session, load }: { session: OpenSession; load: LoadState }) {
  useMarkdown();
  const sessionId = session.id.value;
  if (load.kind === "loading") return <p class="notice quiet-notice">{t("session.loading")}</p>;
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

/** A conversation that is deleted and can be had back for a moment. */
function DeletedNotice({ app, session }: SessionProps) {
  const target = app.undo.offer.value?.target ?? null;
  return (
    <div class="notice">
      <p>{t("session.deleted")}</p>
      {target?.itemId === null && target.sessionId === session.id.value && (
        <button type="button" class="outlined" onClick={() => app.undo.undo()}>
          {t("common.undo")}
        </button>
      )}
    </div>
  );
}

/** The composer, with what stands in its way below it; absent where there is nothing to answer. */
function Composing({ app, session }: SessionProps) {
  const { kind } = session.load.value;
  const numHindered = useSignal(0);
  if (kind === "failed" || app.isDeleted.value) return null;
  const sessionId = session.id.value;
  const { unsent } = app;
  const obstacle = obstacleOf(app) ?? oversizeWordsOf(app, sessionId);
  const problem = unsent.problem.value ?? unsent.storageProblem.value;
  return (
    <div class="composer-frame">
      <div class="column composer-column">
        <HeldMessage app={app} sessionId={sessionId} />
        <Composer
          app={app}
          session={session}
          describedBy={obstacle === null ? undefined : obstacleId}
          isReady={kind === "ready" && obstacle === null && app.next.options.value !== null}
          onHindered={() => numHindered.value++}
        />
        {problem !== null && (
          <p class="obstacle" role="alert">
            {problem}
          </p>
        )}
        {obstacle !== null && (
          <p
            class="obstacle"
            id={obstacleId}
            // Told anew each time that the reader wants to send and cannot.
            key={numHindered.value}
            role={numHindered.value > 0 ? "alert" : undefined}
          >
            {obstacle}{" "}
            {app.next.isVariableMissing.value && (
              <button type="button" class="outlined" onClick={() => app.askForVariables()}>
                {t("persona.give")}
              </button>
            )}
          </p>
        )}
      </div>
    </div>
  );
}

function oversizeWordsOf({ connection, drafts, unsent }: App, sessionId: string | null) {
  const attachedBytes = unsent.attachmentsOf(sessionId).reduce((sum, each) => sum + each.wireBytes, 0);
  return oversizeWords(drafts.of(sessionId), connection.maxMessageBytes.value, attachedBytes);
}
