/**
 * The one thing a screen reader is told without asking: beginnings, ends and lost connections.
 *
 * Compares the phase of the answer on the screen with the one before; tokens are never announced.
 */

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import type { Phase } from "../chat/answer";
import type { App } from "../app";
import { announcement } from "../chat/answer_words";
import { t } from "../i18n/catalogue";

export function StatusLine({ app }: { app: App }) {
  const words = useSignal("");
  const last = app.current.value.entries.value.at(-1);
  const answer = last?.kind === "answer" ? last.answer.value : null;
  const connection = app.connection.state.value;
  const isLost = app.connection.isLost.value;
  const seen = useRef<{ key: string | undefined; phase: Phase | undefined }>(undefined);

  useEffect(() => {
    // An answer that comes into view is no news; one that changes while in view is.
    const isNews = seen.current?.key === last?.key && seen.current?.phase !== answer?.phase;
    seen.current = { key: last?.key, phase: answer?.phase };
    if (answer !== null && isNews) words.value = announcement(answer) ?? words.value;
  }, [last?.key, answer?.phase]);
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
