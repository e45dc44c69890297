/** One session in the list: its title, and what can be done with it. */

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

import type { App } from "../../app";
import { t } from "../../i18n/catalogue";
import { hashOf } from "../../router";
import { exportName } from "../../sessions/export_name";
import { neighbourOf } from "../../sessions/session_list";
import { exportUrl } from "../../wire/api";
import type { WireConversation } from "../../wire/protocol";
import { BinIcon, DownloadIcon, EditIcon, PinIcon } from "../icons";
import { lazyView } from "../lazy_view";
import { RowMenu } from "./row_menu";

const TitleEditor = lazyView(async () => (await import("./title_editor")).TitleEditor);

interface SessionRowProps {
  app: App;
  session: WireConversation;
  onChoose: () => void;
}

export function SessionRow({ app, session, onChoose }: SessionRowProps) {
  const isRenaming = useSignal(false);
  const row = useRef<HTMLLIElement>(null);
  const isCurrent =
    app.place.value.kind === "chat" && app.current.value.id.value === session.id;
  const isAnswering = session.active_response_ids.length > 0 && app.connection.isLive;
  const title = session.title || t("session.untitled");
  const remove = () => {
    const list = row.current?.closest("nav");
    const neighbour = neighbourOf(app.list.sessions.value, session.id);
    app.deleteSession(session.id, title);
    focusRow(list, neighbour);
  };
  const pin = () => {
    void app.pinSession(session.id, !session.pinned);
    stayWith(session.id);
  };
  if (isRenaming.value) {
    return (
      <li class="row">
        <TitleEditor
          title={session.title}
          onSubmit={(renamed) => void app.renameSession(session.id, renamed)}
          onClose={() => {
            isRenaming.value = false;
            stayWith(session.id);
          }}
        />
      </li>
    );
  }
  return (
    <li class={isCurrent ? "row current" : "row"} ref={row}>
      <a
        href={hashOf(session.id)}
        aria-current={isCurrent ? "page" : undefined}
        title={title}
        dir="auto"
        onClick={onChoose}
      >
        {isAnswering && <span class="answering" role="img" aria-label={t("list.answering")} />}
        {title}
      </a>
      <RowMenu label={t("list.menuNamed", { title })}>
        <button type="button" onClick={() => (isRenaming.value = true)}>
          <EditIcon /> {t("list.rename")}
        </button>
        <button type="button" onClick={pin}>
          <PinIcon /> {session.pinned ? t("list.unpin") : t("list.pin")}
        </button>
        <a href={exportUrl(session.id)} download={exportName(title, new Date())}>
          <DownloadIcon /> {t("list.export")}
        </a>
        <button type="button" class="danger" onClick={remove}>
          <BinIcon /> {t("common.delete")}
        </button>
      </RowMenu>
    </li>
  );
}

/** Go on with a row that is drawn anew, unless the focus has gone elsewhere. */
function stayWith(sessionId: string): void {
  requestAnimationFrame(() => {
    if (document.activeElement === document.body) focusRow(document.body, sessionId);
  });
}

/** Go on from where the deleted row stood, or from the top of an empty list. */
function focusRow(list: Element | null | undefined, sessionId: string | null): void {
  const link = sessionId === null ? ".new-chat" : `a[href="${CSS.escape(hashOf(sessionId))}"]`;
  list?.querySelector<HTMLElement>(link)?.focus();
}
