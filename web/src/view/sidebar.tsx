/** The list of stored sessions by day, and the way to a new one. */

import { useSignal } from "@preact/signals";

import type { App } from "../app";
import type { WireConversation } from "../protocol";
import { hashOf } from "../router";
import { groupByDay } from "../session_list";
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
    <nav class="sidebar" aria-label="Conversations">
      <p class="brand">chatserve</p>
      <button type="button" class="outlined new-chat" onClick={newChat}>
        <PlusIcon /> New chat
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
            Show older
          </button>
        )}
        <ListNote app={app} />
      </div>
    </nav>
  );
}

function ListNote({ app: { list } }: { app: App }) {
  if (list.problem.value !== null) return <p class="note">{list.problem.value}</p>;
  if (!list.isLoaded.value || list.sessions.value.length > 0) return null;
  return <p class="note">Conversations appear here.</p>;
}

interface SessionRowProps extends SidebarProps {
  session: WireConversation;
}

function SessionRow({ app, session, onChoose }: SessionRowProps) {
  const isAsking = useSignal(false);
  const isCurrent = app.current.value.id.value === session.id;
  const title = session.title || "Untitled";
  if (isAsking.value) return <DeleteQuestion app={app} session={session} isAsking={isAsking} />;
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
        aria-label={`Delete ${title}`}
        onClick={() => (isAsking.value = true)}
      >
        <BinIcon />
      </button>
    </li>
  );
}

interface DeleteQuestionProps {
  app: App;
  session: WireConversation;
  isAsking: { value: boolean };
}

function DeleteQuestion({ app, session, isAsking }: DeleteQuestionProps) {
  const focus = (button: HTMLButtonElement | null) => button?.focus();
  return (
    <li class="row asking" role="group" aria-label={`Delete ${session.title || "Untitled"}?`}>
      <span>Delete for good?</span>
      <button type="button" class="quiet danger" onClick={() => void app.deleteSession(session.id)}>
        Delete
      </button>
      <button type="button" class="quiet" ref={focus} onClick={() => (isAsking.value = false)}>
        Keep
      </button>
    </li>
  );
}
