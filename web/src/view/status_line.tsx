/**
 * What a screen reader is told without asking: see `Announcer`, and what becomes of the connection.
 *
 * Both places are always there, since text in a place that has just appeared is not read out.
 */

import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import type { App } from "../app";
import { Announcer } from "../chat/announcer";
import { t } from "../i18n/catalogue";

export function StatusLine({ app }: { app: App }) {
  const announcer = useMemo(() => new Announcer(), []);
  const last = app.current.value.entries.value.at(-1);
  const answer = last?.kind === "answer" ? last.answer.value : null;
  useEffect(() => announcer.leave(), [app.current.value]);
  useEffect(() => announcer.show(last?.key ?? null, answer, Date.now()), [last?.key, answer]);
  useEffect(() => () => announcer.rest(), []);
  return (
    <>
      <p class="visually-hidden" role="status" aria-live="polite">
        {announcer.polite.value}
      </p>
      <ConnectionStatus app={app} />
      <p class="visually-hidden" role="alert">
        {announcer.urgent.value}
      </p>
    </>
  );
}

function ConnectionStatus({ app }: { app: App }) {
  const words = useSignal("");
  const connection = app.connection.state.value;
  const isLost = app.connection.isLost.value;
  useEffect(() => {
    if (isLost && connection.kind !== "live") return;
    if (connection.kind === "reconnecting") words.value = t("connection.announce.lost");
    else if (connection.kind === "offline") words.value = t("connection.announce.offline");
    else if (connection.kind === "live" && words.value !== "") words.value = t("connection.announce.live");
  }, [connection.kind]);
  useEffect(() => {
    if (isLost) words.value = t("connection.lost");
  }, [isLost]);
  return (
    <p class="visually-hidden" role="status" aria-live="polite">
      {words.value}
    </p>
  );
}
