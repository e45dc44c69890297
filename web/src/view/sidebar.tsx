/** The list of stored sessions by day, and the way to a new one. */

import "./sidebar.css";

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { App } from "../app";
import type { WireConversation } from "../wire/protocol";
import { hashOf } from "../router";
import { t } from "../i18n/catalogue";
import { groupByDay, neighbourOf } from "../sessions/session_list";
import { BinIcon, PlusIcon } from "./icons";

interface SidebarProps {
  app: App;
  /** Something was chosen; a sheet closes then. */
  onChoose: () => void;
}

export function Sidebar({ app, onChoose }: SidebarProps) {
  const { list } = app;
  const newChat = () => {
    app.newChat();
    onChoose();
  };
  return (
    <nav class="sidebar" aria-label={t("list.label")}>
      <p class="brand">chatserve</p>
      <button type="button" class="outlined new-chat" onClick={newChat}>
        <PlusIcon /> {t("list.newChat")}
      </button>
      <div class="session-groups">
        {groupByDay(list.sessions.value, new Date()).map(({ name, sessions }) => (
          <section key={name} aria-label={name}>
            <h2>{name}</h2>
            <ul>
              {sessions.map((session) => (
                <SessionRow key={session.id} app={app} session={session} onChoose={onChoose} />
              ))}
            </ul>
          </section>
        ))}
        {list.hasMore.value && (
          <button type="button" class="quiet" onClick={() => void list.loadMore()}>
            {t("list.older")}
          </button>
        )}
        <ListNote app={app} />
      </div>
      {app.login.canLogOut.value && (
        <button type="button" class="quiet log-out" onClick={() => void app.login.logOut()}>
          {t("login.logOut", { user: app.login.identity.value?.user ?? "" })}
        </button>
      )}
    </nav>
  );
}

function ListNote({ app: { list } }: { app: App }) {
  if (list.problem.value !== null) return <p class="note">{list.problem.value}</p>;
  if (!list.isLoaded.value || list.sessions.value.length > 0) return null;
  return <p class="note">{t("list.empty")}</p>;
}

interface SessionRowProps extends SidebarProps {
  session: WireConversation;
}

function SessionRow({ app, session, onChoose }: SessionRowProps) {
  const isAsking = useSignal(false);
  const bin = useRef<HTMLButtonElement>(null);
  const isCurrent = app.current.value.id.value === session.id;
  const title = titleOf(session);
  useFocusBack(bin, isAsking.value);
  if (isAsking.value) {
    return <DeleteQuestion app={app} session={session} onKeep={() => (isAsking.value = false)} />;
  }
  return (
    <li class={isCurrent ? "row current" : "row"}>
      <a
        href={hashOf(session.id)}
        aria-current={isCurrent ? "page" : undefined}
        title={title}
        dir="auto"
        onClick={onChoose}
      >
        {title}
      </a>
      <button
        type="button"
        class="quiet"
        ref={bin}
        aria-label={t("list.deleteNamed", { title })}
        onClick={() => (isAsking.value = true)}
      >
        <BinIcon />
      </button>
    </li>
  );
}

/** The question took the focus from the button; a "no" gives it back. */
function useFocusBack(button: { readonly current: HTMLElement | null }, isAsking: boolean): void {
  const hasAsked = useRef(false);
  useEffect(() => {
    if (hasAsked.current && !isAsking) button.current?.focus();
    hasAsked.current = isAsking;
  }, [isAsking]);
}

interface DeleteQuestionProps {
  app: App;
  session: WireConversation;
  onKeep: () => void;
}

function DeleteQuestion({ app, session, onKeep }: DeleteQuestionProps) {
  const row = useRef<HTMLLIElement>(null);
  const keep = useRef<HTMLButtonElement>(null);
  useEffect(() => keep.current?.focus(), []);
  const remove = async () => {
    const list = row.current?.closest("nav");
    const neighbour = neighbourOf(app.list.sessions.value, session.id);
    if (await app.deleteSession(session.id)) focusRow(list, neighbour);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    // This Escape says no to the question; it neither closes the sheet nor stops an answer.
    event.preventDefault();
    event.stopPropagation();
    onKeep();
  };
  return (
    <li
      class="row asking"
      role="group"
      aria-label={t("list.deleteQuestionNamed", { title: titleOf(session) })}
      ref={row}
      onKeyDown={onKeyDown}
    >
      <span>{t("list.deleteQuestion")}</span>
      <button type="button" class="outlined danger" onClick={() => void remove()}>
        {t("common.delete")}
      </button>
      <button type="button" class="outlined" title={t("list.keepHint")} ref={keep} onClick={onKeep}>
        {t("list.keep")}
      </button>
    </li>
  );
}

/** Go on from where the deleted row stood, or from the top of an empty list. */
function focusRow(list: Element | null | undefined, sessionId: string | null): void {
  const link = sessionId === null ? ".new-chat" : `a[href="${CSS.escape(hashOf(sessionId))}"]`;
  list?.querySelector<HTMLElement>(link)?.focus();
}

function titleOf(session: WireConversation): string {
  return session.title || t("session.untitled");
}
