/** The list of stored sessions, the search in them, and the way to a new one. */

import "./sidebar.css";

import type { App } from "../../app";
import { t } from "../../i18n/catalogue";
import { groupSessions } from "../../sessions/session_list";
import { GearIcon, KeyboardIcon, LeaveIcon, PlusIcon } from "../icons";
import { lazyView } from "../lazy_view";
import { ListTools } from "./list_tools";
import { PlaceLinks } from "./place_links";
import { SearchBox } from "./search_box";
import { SessionRow } from "./session_row";

const SearchHits = lazyView(async () => (await import("./search_hits")).SearchHits);

export interface SidebarProps {
  app: App;
  /** Something was chosen; a sheet closes then. */
  onChoose: () => void;
}

export function Sidebar({ app, onChoose }: SidebarProps) {
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
      <SearchBox search={app.search} onChoose={onChoose} />
      <div class="session-groups">
        {app.search.isActive.value ? (
          <SearchHits search={app.search} onChoose={onChoose} />
        ) : (
          <Groups app={app} onChoose={onChoose} />
        )}
      </div>
      <ListTools app={app} />
      <PlaceLinks app={app} onChoose={onChoose} />
      <div class="sidebar-foot">
        <button
          type="button"
          class="quiet settings-button"
          onClick={() => app.layout.showDialog("settings")}
        >
          <GearIcon /> {t("header.settings")}
        </button>
        <button
          type="button"
          class="quiet"
          aria-label={t("header.keys")}
          title={t("header.keysHint")}
          onClick={() => app.layout.showDialog("keys")}
        >
          <KeyboardIcon />
        </button>
      </div>
      {app.login.canLogOut.value && (
        <>
          <button type="button" class="quiet log-out" onClick={() => void app.logOut()}>
            <LeaveIcon /> <span>{t("login.logOut", { user: userWords(app) })}</span>
          </button>
          <p class="note" role="alert">
            {app.login.problem.value}
          </p>
        </>
      )}
    </nav>
  );
}

function Groups({ app, onChoose }: SidebarProps) {
  const { list } = app;
  return (
    <>
      {groupSessions(list.sessions.value, new Date()).map(({ name, sessions }) => (
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
    </>
  );
}

function userWords({ login }: App): string {
  const { value: identity } = login.identity;
  return identity === null ? "" : `${identity.user} · ${identity.tenant}`;
}

function ListNote({ app: { list } }: { app: App }) {
  if (list.problem.value !== null) return <p class="note">{list.problem.value}</p>;
  if (!list.isLoaded.value || list.sessions.value.length > 0) return null;
  return <p class="note">{t("list.empty")}</p>;
}
