/**
 * The body of the operator's page: the tenants, workers and queues of the service.
 *
 * Mirrors chatserve/protocol/overview.py; nothing here has behaviour.
 */

/** What of a limit is used, in the current minute or right now; null is not known. */
export interface WireLimitUse {
  limit: number;
  used: number | null;
}

export interface WireTenantOverview {
  name: string;
  requests_running: number;
  requests_queued: number;
  /** Counted where they are limited. */
  connections: number | null;
  usage_today: {
    requests: number;
    input_tokens: number;
    /** Of the input. */
    cached_tokens: number;
    output_tokens: number;
  };
  /** By the name of the quota: `requests_per_minute`, `connections`, … */
  limits: Record<string, WireLimitUse>;
}

export interface WireWorkerOverview {
  id: string;
  model: string;
  version: string;
  is_draining: boolean;
  /** Null: the last sign of life has run out. */
  beat_age_ms: number | null;
  requests_running: number;
  requests_waiting: number;
  num_pages: number;
  pages_free: number;
  pages_used: number;
  pages_cached: number;
  pages_shared: number;
  pages_pinned: number;
  /** Prompt tokens looked up in the cache, and found there. */
  query_tokens: number;
  hit_tokens: number;
}

export interface WireQueueOverview {
  model: string;
  length: number;
  max_length: number;
}

export interface WireOverview {
  /** The one that answers. */
  gateway: { version: string; connections: number; is_draining: boolean };
  workers: WireWorkerOverview[];
  queues: WireQueueOverview[];
  /** A page of them, by name. */
  tenants: WireTenantOverview[];
  has_more: boolean;
}
