/** The prefix cache as a picture. */

import type { App } from "../../app";

export function CacheView({ app: _app }: { app: App }) {
  return null;
}
