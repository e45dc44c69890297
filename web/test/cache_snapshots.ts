/** Snapshots of two tenants that share a preamble, as small or large as a test needs them. */

import type {
  WireCache,
  WireCacheNode,
  WireCacheWorker,
  WireRunningRequest,
} from "../src/wire/cache_snapshot";

export function cacheNode(id: number, parent: number | null, more: Partial<WireCacheNode> = {}) {
  const node: WireCacheNode = {
    id,
    parent,
    num_tokens: 64,
    num_pages: 4,
    num_sharers: 0,
    num_hits: 1,
    idle_s: 10,
    scope: "mine",
    tenant: null,
    pinned: false,
    alike: null,
    text: `Prefix ${id}`,
    roles: [],
  };
  return { ...node, ...more };
}

/** The preamble, below it a prompt of each tenant, below that a conversation: ids 1 to 5. */
export function twoTenants(): WireCacheNode[] {
  const foreign = { scope: "other", text: null } as const;
  return [
    cacheNode(1, null, { scope: "public", text: "Be kind.", pinned: true, num_sharers: 2 }),
    cacheNode(2, 1, { text: "You are the helpdesk.", num_tokens: 640, num_pages: 40, num_sharers: 2 }),
    cacheNode(3, 1, { ...foreign, num_tokens: 320, num_pages: 20, num_hits: 9 }),
    cacheNode(4, 2, { text: "Where is my invoice?", idle_s: 2, num_hits: 5 }),
    cacheNode(5, 3, foreign),
  ];
}

/** A tree of so many nodes in which every node has up to `fanout` children. */
export function treeOf(numNodes: number, fanout: number): WireCacheNode[] {
  return Array.from({ length: numNodes }, (_, index) =>
    cacheNode(index + 1, index === 0 ? null : Math.floor((index - 1) / fanout) + 1, {
      num_tokens: 16 + ((index * 397) % 2_000),
      num_sharers: index % 7 === 0 ? index % 11 : 0,
    }),
  );
}

export function runningRequest(more: Partial<WireRunningRequest> = {}): WireRunningRequest {
  const request: WireRunningRequest = {
    id: "resp_1",
    tenant: null,
    state: "decoding",
    num_prompt_tokens: 40,
    num_cached_tokens: 32,
    num_computed_tokens: 45,
    num_output_tokens: 5,
    pages: [4, 0, 7],
  };
  return { ...request, ...more };
}

export function cacheWorker(more: Partial<WireCacheWorker> = {}): WireCacheWorker {
  const worker: WireCacheWorker = {
    id: "engine-1",
    model: "tiny",
    taken_at: 1_000,
    page_size: 16,
    num_pages: 10,
    nodes: twoTenants(),
    num_hidden_nodes: 0,
    pages: "2uc.up5??.",
    copied_pages: [4],
    requests: [runningRequest()],
    steps: [
      { at: 990, prefill_tokens: 40, decode_tokens: 2, cached_tokens: 32, num_waiting: 0 },
      { at: 995, prefill_tokens: 0, decode_tokens: 6, cached_tokens: 0, num_waiting: 3 },
    ],
  };
  return { ...worker, ...more };
}

export function cacheOf(...workers: WireCacheWorker[]): WireCache {
  return { view: "tenant", workers };
}
