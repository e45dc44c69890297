/**
 * The wire, as the page sees it: the messages of the socket and the bodies of the HTTP surface.
 *
 * Mirrors chatserve/protocol; base names are those of the Responses API, ours begin with
 * `chatserve:`. Nothing here has behaviour beyond recognising a frame.
 */

export interface WireUsage {
  input_tokens: number;
  input_tokens_details: { cached_tokens: number };
  output_tokens: number;
  total_tokens: number;
}

export interface WireTimings {
  queue_ms: number | null;
  prefill_ms: number | null;
  ttft_ms: number | null;
  itl_p50_ms: number | null;
  tok_s: number | null;
}

export interface WireError {
  type?: string;
  code?: string | null;
  message: string;
  param?: string | null;
  /** What a reply over HTTP has in its head, by names in small letters. */
  headers?: Readonly<Record<string, string>>;
  /** The precise code where the base protocol has only `server_error`. */
  "chatserve:code"?: string | null;
}

/** The response object inside `response.*` events. */
export interface WireResponse {
  id: string;
  status: "queued" | "in_progress" | "completed" | "incomplete" | "failed";
  error?: WireError | null;
  incomplete_details?: { reason?: string } | null;
  model?: string;
  usage?: WireUsage | null;
  "chatserve:timings"?: WireTimings | null;
  /** In a conversation: the answer's own message, and the message that it follows. */
  "chatserve:message_id"?: string | null;
  "chatserve:parent_id"?: string | null;
  "chatserve:continue"?: boolean;
}

interface Framed {
  /** The lane the message belongs to, echoed from the client's message. */
  stream_id?: string;
}

interface Numbered extends Framed {
  sequence_number: number;
}

export interface LifecycleEvent extends Numbered {
  type:
    | "response.created"
    | "response.queued"
    | "response.in_progress"
    | "response.completed"
    | "response.incomplete"
    | "response.failed";
  response: WireResponse;
  "chatserve:input_tokens"?: number;
  "chatserve:cached_tokens"?: number;
  "chatserve:queue_ms"?: number | null;
}

export interface DeltaEvent extends Numbered {
  type: "response.output_text.delta";
  delta: string;
  /** On the first one. */
  "chatserve:ttft_ms"?: number;
}

export interface TextDoneEvent extends Numbered {
  type: "response.output_text.done";
  text: string;
}

/** Events that only frame the text; they count for the numbering. */
export interface FramingEvent extends Numbered {
  type:
    | "response.output_item.added"
    | "response.content_part.added"
    | "response.content_part.done"
    | "response.output_item.done";
}

export type NumberedEvent = LifecycleEvent | DeltaEvent | TextDoneEvent | FramingEvent;

/** The log was trimmed: the whole text up to and including event `to`. */
export interface GapEvent extends Framed {
  type: "chatserve:response.gap";
  response_id: string;
  from: number;
  to: number;
  snapshot: string;
}

export interface QueueEvent extends Framed {
  type: "chatserve:queue.updated";
  response_id: string;
  /** 0 is next. */
  position: number;
  eta_ms?: number | null;
}

/** The prompt takes more than one step: so much is computed of what was not cached. */
export interface PrefillEvent extends Framed {
  type: "chatserve:prefill.updated";
  response_id: string;
  cached_tokens: number;
  computed_tokens: number;
  total_tokens: number;
}

/** The worker that had the answer is silent or gone; so many live that can take it over. */
export interface WorkerLostEvent extends Framed {
  type: "chatserve:worker.lost";
  response_id: string;
  num_workers: number;
}

/** What is told between the numbered events, and is over with the next of them. */
export type UpdateEvent = QueueEvent | PrefillEvent | WorkerLostEvent;

export interface ErrorEvent extends Framed {
  type: "error";
  status?: number;
  error: WireError;
}

/** The server's first frame. */
export interface OpenedEvent {
  type: "chatserve:connection.opened";
  limits?: { max_message_bytes?: number };
}

export type ServiceEvent = OpenedEvent | { type: "chatserve:pong" | "chatserve:goaway" };

export type AnswerEvent = NumberedEvent | GapEvent | UpdateEvent | ErrorEvent;
export type ServerEvent = AnswerEvent | ServiceEvent;

export interface CreateMessage {
  type: "response.create";
  stream_id: string;
  /** The same frame sent again is answered by the same response, never by a second one. */
  event_id: string;
  model: string;
  conversation: string;
  /** Nothing, to have a message answered anew that is there already. */
  input: string | [];
  /** The message to follow, or "root"; left out: the newest. */
  "chatserve:parent_id"?: string;
  /** The answer goes on from the text of the one that it follows. */
  "chatserve:continue"?: true;
  /** The sampling fields, and what else a create may have. */
  [field: string]: unknown;
}

export interface CancelMessage {
  type: "response.cancel";
  stream_id?: string;
  response_id?: string;
}

export interface ResumeMessage {
  type: "chatserve:response.resume";
  stream_id: string;
  response_id: string;
  /** Left out: from the first event. */
  starting_after?: number;
}

export interface PingMessage {
  type: "chatserve:ping";
  t: number;
}

export type ClientMessage = CreateMessage | CancelMessage | ResumeMessage | PingMessage;

const serviceTypes = new Set<string>([
  "chatserve:connection.opened",
  "chatserve:pong",
  "chatserve:goaway",
] satisfies ServiceEvent["type"][]);

const terminalTypes = new Set<string>([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "error",
] satisfies AnswerEvent["type"][]);

/** Return whether an event is about an answer, not about the connection. */
export function isAnswerEvent(event: ServerEvent): event is AnswerEvent {
  return !serviceTypes.has(event.type);
}

/** Return whether an event is the last of its answer. */
export function isTerminal(event: ServerEvent): boolean {
  return terminalTypes.has(event.type);
}

/** Return the event in a frame, or null when the frame is not an event. */
export function parseFrame(data: unknown): ServerEvent | null {
  if (typeof data !== "string") return null;
  try {
    const event: unknown = JSON.parse(data);
    const isEvent = typeof event === "object" && event !== null && "type" in event;
    return isEvent ? (event as ServerEvent) : null;
  } catch {
    return null;
  }
}

// HTTP bodies.

/** Who the caller is; without a key id, everybody is let in. */
export interface WireIdentity {
  tenant: string;
  user: string;
  role: string;
  key_id: string | null;
}

export interface WireModel {
  id: string;
  max_model_len?: number;
  "chatserve:base_model"?: string;
  /** The persona of an alias, which is no model of its own. */
  "chatserve:persona"?: string | null;
  "chatserve:sampling"?: WireSamplingField[];
}

export type WireSamplingValue = number | boolean | string[] | number[];

/** A sampling field, described so that a control can be made of it. */
export interface WireSamplingField {
  name: string;
  type: "number" | "integer" | "boolean" | "strings" | "integers";
  default: WireSamplingValue | null;
  minimum?: number | null;
  maximum?: number | null;
  exclusive_minimum?: boolean;
  exclusive_maximum?: boolean;
  max_items?: number | null;
  max_item_chars?: number | null;
}

/** A named prompt of the tenant; only one that is read alone has its `text`. */
export interface WirePrompt {
  name: string;
  version: number;
  excerpt: string;
  /** One whose default is null needs a value in every request. */
  variables: { name: string; default: string | null }[];
  workers: WirePromptWorker[];
  text?: string;
}

export interface WirePromptWorker {
  model: string;
  /** Null: nothing heard of it yet. */
  state: "warming" | "pinned" | "cached" | "refused" | null;
  num_tokens: number;
}

export interface WireConversation {
  id: string;
  title: string;
  created_at: number;
  updated_at: number;
  active_response_ids: string[];
  pinned?: boolean;
  metadata?: Record<string, string>;
  "chatserve:version"?: number;
}

/** A session in which a search found its words; in the title where `item_id` is null. */
export interface WireHit {
  conversation: WireConversation;
  matches: { item_id: string | null; role: string | null; excerpt: string }[];
}

export interface WireHitList {
  data: WireHit[];
  cursor: string | null;
}

export interface WireItem {
  id: string;
  type: "message";
  role: "system" | "developer" | "user" | "assistant";
  status: "in_progress" | "completed" | "incomplete" | "failed";
  content: { type: string; text: string }[];
  "chatserve:parent_id"?: string | null;
  "chatserve:continues"?: boolean;
  "chatserve:response_id"?: string | null;
  "chatserve:usage"?: WireUsage | null;
  "chatserve:timings"?: WireTimings | null;
  "chatserve:incomplete_reason"?: string | null;
  "chatserve:error"?: WireError | null;
}

export interface WireList<T> {
  data: T[];
  has_more: boolean;
  last_id?: string | null;
}

/** Return how long a server asks to be left alone; this one sends seconds, and no date. */
export function toRetryAfterMs(header: string | null | undefined): number | null {
  const seconds = Number.parseInt(header ?? "", 10);
  return Number.isNaN(seconds) ? null : 1_000 * seconds;
}
