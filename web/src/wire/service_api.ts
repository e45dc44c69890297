/** What is asked of the service as a whole, by views that are loaded when they are shown. */

import { call } from "./api";
import type { WireCache } from "./cache_snapshot";
import type { WireOverview } from "./overview";

export async function getVersion(): Promise<string> {
  const { version } = await call<{ version: string }>("GET", "version", { version: "" });
  return version;
}

/** Return what the viewer may know of the caches; an operator may look at one tenant's alone. */
export function getCache(tenant: string | null): Promise<WireCache> {
  const query = tenant === null ? "" : `?${new URLSearchParams({ tenant })}`;
  return call("GET", `v1/chatserve/cache${query}`, { workers: [] });
}

/** Return what the service does now, with a page of the tenants that come after one by name. */
export function getOverview(after: string | null): Promise<WireOverview> {
  const query = after === null ? "" : `?${new URLSearchParams({ after })}`;
  return call("GET", `v1/chatserve/overview${query}`, { workers: [], queues: [], tenants: [] });
}
