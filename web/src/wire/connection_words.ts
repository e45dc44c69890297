/** What the page says of its connection. */

import { t, type Key } from "../i18n/catalogue";
import type { ConnectionState } from "./connection";
import type { RetryReason } from "./patience";

export function connectionWords(state: ConnectionState, nowMs: number): string {
  switch (state.kind) {
    case "refused":
      return t("connection.refused", { reason: state.reason });
    case "live":
      return state.via === "http" ? t("connection.liveOverHttp") : t("connection.live");
    case "reconnecting":
      return t(retryKeys[state.reason], {
        seconds: Math.max(1, Math.ceil((state.retryAtMs - nowMs) / 1_000)),
      });
    default:
      return t(`connection.${state.kind}`);
  }
}

const retryKeys = {
  lost: "connection.reconnecting",
  busy: "connection.busy",
  crowded: "connection.crowded",
} as const satisfies Record<RetryReason, Key>;
