/**
 * The body of the cache view: what each worker holds and does, as far as the viewer may know.
 *
 * Mirrors what the gateway answers to `GET /v1/chatserve/cache`; nothing here has behaviour.
 */

export type CacheViewer = "tenant" | "user" | "all";
export type NodeScope = "public" | "mine" | "other";

export type SpeakerRole = "system" | "user" | "assistant";

/** One edge of the radix tree; parents come before their children, the root is left out. */
export interface WireCacheNode {
  id: number;
  parent: number | null;
  num_tokens: number;
  num_pages: number;
  /** Running requests whose prefix goes through it now. */
  num_sharers: number;
  /** How many admissions found it; null where that would tell of others. */
  num_hits: number | null;
  /** Since its last use; null as above. */
  idle_s: number | null;
  scope: NodeScope;
  /** Whose it is, where the viewer sees all of them; null for a public one. */
  tenant: string | null;
  pinned: boolean;
  /** The node beside it that begins with the most equal tokens, where the viewer may read both. */
  alike: { node_id: number; num_tokens: number } | null;
  /** The first words, where the viewer may read them. */
  text: string | null;
  /** Where in the text somebody's turn begins, as far as the model's chat template tells it. */
  roles: { role: SpeakerRole; at: number }[];
}

export interface WireRunningRequest {
  /** Null for that of another user of the viewer's tenant. */
  id: string | null;
  tenant: string | null;
  state: "prefilling" | "decoding";
  num_prompt_tokens: number;
  num_cached_tokens: number;
  num_computed_tokens: number;
  num_output_tokens: number;
  /** Physical pages, in the order of its tokens. */
  pages: number[];
}

/** Half a second in which there was a step or a queue. */
export interface WireStepInterval {
  /** When it began, in seconds since 1970. */
  at: number;
  prefill_tokens: number;
  decode_tokens: number;
  cached_tokens: number;
  num_waiting: number;
}

export interface WireCacheWorker {
  id: string;
  model: string;
  taken_at: number;
  page_size: number;
  num_pages: number;
  nodes: WireCacheNode[];
  num_hidden_nodes: number;
  /**
   * One character for each physical page; cache/page_states.ts says which. For members pages are
   * numbered anew in each snapshot.
   */
  pages: string;
  copied_pages: number[];
  requests: WireRunningRequest[];
  steps: WireStepInterval[];
}

export interface WireCache {
  view: CacheViewer;
  workers: WireCacheWorker[];
}
