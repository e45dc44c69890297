/** The line above the transcript: which session, what answers in it, and how the connection is. */

import "./header.css";

import { useEffect } from "preact/hooks";

import type { App } from "../app";
import { formatCount, plural, t } from "../i18n/catalogue";
import { connectionWords } from "../wire/connection_words";
import { MenuIcon, PanelIcon } from "./icons";
import { ModelChoice } from "./model_choice";
import { useNow } from "./now";

export function Header({ app }: { app: App }) {
  const { layout } = app;
  const isChat = app.place.value.kind === "chat";
  const numChanged = isChat ? app.next.numChanged.value : 0;
  const title = titleOf(app);
  useEffect(() => {
    document.title = `${title} - chatserve`;
  }, [title]);
  return (
    <header class="top">
      <button
        type="button"
        class="quiet menu"
        aria-label={t("header.menu")}
        aria-expanded={layout.isListShown.value}
        title={t("header.menuHint")}
        onClick={() => layout.toggleList()}
      >
        <MenuIcon />
      </button>
      <h1 dir="auto">{title}</h1>
      {isChat && <ModelChoice app={app} />}
      <ConnectionWord app={app} />
      {isChat && (
        <button
          type="button"
          class="quiet"
          aria-label={t("header.inspector")}
          aria-description={numChanged > 0 ? plural("header.changed", numChanged) : undefined}
          aria-expanded={layout.isInspectorShown.value}
          title={t("header.inspectorHint")}
          onClick={() => layout.toggleInspector()}
        >
          <PanelIcon />
          {numChanged > 0 && (
            <span
              class="num-changed"
              title={plural("header.changed", numChanged)}
              data-count={formatCount(numChanged)}
              aria-hidden="true"
            />
          )}
        </button>
      )}
    </header>
  );
}

function titleOf(app: App): string {
  const place = app.place.value;
  if (place.kind !== "chat") return t(`header.${place.kind}`);
  const { id, title } = app.current.value;
  if (id.value === null) return t("list.newChat");
  const listed = app.list.sessions.value.find((session) => session.id === id.value);
  return listed?.title || title.value || t("session.untitled");
}

function ConnectionWord({ app }: { app: App }) {
  const state = app.connection.state.value;
  const nowMs = useNow(state.kind === "reconnecting");
  const isWaiting = state.kind === "live" && app.offer.isNoneYet.value;
  return (
    <span class="connection" data-state={isWaiting ? "waiting" : state.kind}>
      {isWaiting ? t("connection.noModel") : connectionWords(state, nowMs)}
    </span>
  );
}
