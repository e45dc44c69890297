/**
 * The body of the operator's page: the tenants and the workers of the service.
 *
 * Mirrors what the gateway answers to `GET /v1/chatserve/overview`; nothing here has behaviour.
 */

export interface WireLimitUse {
  /** A quota's name: `requests_per_minute`, `connections`, … */
  name: string;
  used: number;
  limit: number;
}

export interface WireTenantOverview {
  id: string;
  num_running: number;
  num_waiting: number;
  num_connections: number;
  usage_today: {
    requests: number;
    input_tokens: number;
    cached_tokens: number;
    output_tokens: number;
  };
  /** Only what is limited. */
  limits: WireLimitUse[];
}

export interface WireWorkerOverview {
  id: string;
  model: string;
  is_draining: boolean;
  num_pages: number;
  num_free_pages: number;
  /** Cached prompt tokens of all prompt tokens; null before the first prompt. */
  hit_rate: number | null;
  num_running: number;
  num_waiting: number;
  beat_age_s: number;
}

export interface WireOverview {
  tenants: WireTenantOverview[];
  workers: WireWorkerOverview[];
}
