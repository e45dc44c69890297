/** The panel beside the chat. */

import type { App } from "../../app";

export function Inspector({ app: _app }: { app: App }) {
  return null;
}
