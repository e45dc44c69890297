/** The tenants and workers of the service, for its operator. */

import type { App } from "../../app";

export function OperatorView({ app: _app }: { app: App }) {
  return null;
}
