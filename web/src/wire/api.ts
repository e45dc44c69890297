/**
 * The HTTP surface the page uses: who one is, models, personas, stored sessions.
 *
 * Every failure leaves here as an `ApiError` with a code and a sentence, whether the gateway
 * answered with an error, something in between answered for it, or nobody did. That a request was
 * refused for want of a key is told to whoever asks for keys, too, whoever made the request.
 */

import { t } from "../i18n/catalogue";
import { toJson } from "./json";
import {
  toRetryAfterMs,
  type WireConversation,
  type WireError,
  type WireHitList,
  type WireIdentity,
  type WireItem,
  type WireList,
  type WireModel,
  type WirePrompt,
  type WireResponse,
} from "./protocol";

const sessionsPerPage = 50;

/** What a reply must have to be one, each field with a value of its kind; more is not looked at. */
type Shape<T> = NoInfer<Partial<T>>;
const ofSession: Partial<WireConversation> = { id: "", active_response_ids: [] };
const ofList: { data: never[] } = { data: [] };
/** Of a request that is made for what it does: whoever replies with an object has done it. */
const ofAny = {};

let onKeyNeeded = () => {};

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    /** How long the server asks to be left alone. */
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
  }
}

/** Have `listener` called each time a request is refused for want of a valid key. */
export function watchForKeyNeeded(listener: () => void): void {
  onKeyNeeded = listener;
}

export function whoAmI(): Promise<WireIdentity> {
  return call("GET", "v1/chatserve/me", { tenant: "", user: "" });
}

export async function logIn(key: string): Promise<void> {
  await call("POST", "v1/chatserve/login", ofAny, { key });
}

export async function logOut(): Promise<void> {
  await call("POST", "v1/chatserve/logout", ofAny);
}

export async function listModels(): Promise<WireModel[]> {
  const list = await call<WireList<WireModel>>("GET", "v1/models", ofList);
  return list.data;
}

/** Return the named prompts of a tenant, without their texts. */
export async function listPrompts(tenant: string): Promise<WirePrompt[]> {
  const query = new URLSearchParams({ tenant });
  const list = await call<WireList<WirePrompt>>("GET", `v1/chatserve/prompts?${query}`, ofList);
  return list.data;
}

export function getPrompt(tenant: string, name: string): Promise<WirePrompt> {
  const query = new URLSearchParams({ tenant });
  return call("GET", `v1/chatserve/prompts/${encodeURIComponent(name)}?${query}`, { name: "" });
}

export function listSessions(before?: string): Promise<WireList<WireConversation>> {
  const query = new URLSearchParams({ limit: String(sessionsPerPage) });
  if (before !== undefined) query.set("before", before);
  return call("GET", `v1/chatserve/conversations?${query}`, ofList);
}

/** Return the pinned sessions; more than one page of them is not shown. */
export async function listPinned(): Promise<WireConversation[]> {
  const query = new URLSearchParams({ limit: String(sessionsPerPage), pinned: "true" });
  const path = `v1/chatserve/conversations?${query}`;
  const list = await call<WireList<WireConversation>>("GET", path, ofList);
  return list.data;
}

/** Look for words in titles and messages, from where the last call stopped. */
export function searchSessions(words: string, cursor: string | null): Promise<WireHitList> {
  const query = new URLSearchParams({ q: words });
  if (cursor !== null) query.set("cursor", cursor);
  return call("GET", `v1/chatserve/conversations/search?${query}`, ofList);
}

/** Change the fields of a session that are named, and no others. */
export function changeSession(
  sessionId: string,
  change: Partial<Pick<WireConversation, "title" | "pinned">>,
): Promise<WireConversation> {
  return call("POST", `v1/conversations/${encodeURIComponent(sessionId)}`, ofSession, change);
}

/** Return where a session, or all of them, can be downloaded as a document. */
export function exportUrl(sessionId: string | null): string {
  const name = sessionId === null ? "" : `/${encodeURIComponent(sessionId)}`;
  return `v1/chatserve/conversations${name}/export`;
}

/** What became of the sessions of a document. */
export interface WireImported {
  conversation_ids: string[];
  existing_conversation_ids: string[];
}

/** Store the sessions of such a document that are not there already, all or none. */
export function importSessions(document: object): Promise<WireImported> {
  const shape = { conversation_ids: [], existing_conversation_ids: [] };
  return call("POST", "v1/chatserve/conversations/import", shape, document);
}

/**
 * Store a new session, with its system prompt as first item unless that is empty. The title stands
 * in until the server has a better one.
 */
export function createSession(
  systemPrompt: string,
  title: string,
  metadata: Readonly<Record<string, string>>,
): Promise<WireConversation> {
  const items =
    systemPrompt === "" ? [] : [{ type: "message", role: "system", content: systemPrompt }];
  const body = { items, title, metadata, "chatserve:title_source": "words" };
  return call("POST", "v1/conversations", ofSession, body);
}

export function getSession(sessionId: string): Promise<WireConversation> {
  return call("GET", `v1/conversations/${encodeURIComponent(sessionId)}`, ofSession);
}

/**
 * Replace what is noted of a session, also while the page is left; refused where the session has
 * changed since `version`.
 */
export function noteOfSession(
  sessionId: string,
  metadata: Readonly<Record<string, string>>,
  version: number,
): Promise<WireConversation> {
  const path = `v1/conversations/${encodeURIComponent(sessionId)}`;
  const body = { metadata, "chatserve:version": version };
  return call("POST", path, ofSession, body, { keepalive: true });
}

export function getResponse(responseId: string): Promise<WireResponse> {
  return call("GET", `v1/responses/${encodeURIComponent(responseId)}`, { id: "" });
}

/**
 * Return messages of a session, of every branch, the newest first: as many as `limit`, of those
 * that were written before one.
 */
export function listItems(
  sessionId: string,
  limit: number,
  before: string | undefined,
): Promise<WireList<WireItem>> {
  const query = new URLSearchParams({ order: "desc", tree: "true", limit: String(limit) });
  if (before !== undefined) query.set("after", before);
  return call("GET", `v1/conversations/${encodeURIComponent(sessionId)}/items?${query}`, ofList);
}

export async function deleteSession(sessionId: string): Promise<void> {
  const path = `v1/conversations/${encodeURIComponent(sessionId)}`;
  await call("DELETE", path, ofAny, undefined, { keepalive: true });
}

/** Store a message that nobody computed after another one; `parentId` is an item or "root". */
export async function addItem(
  sessionId: string,
  parentId: string,
  role: WireItem["role"],
  text: string,
): Promise<WireItem[]> {
  const path = `v1/conversations/${encodeURIComponent(sessionId)}/items`;
  const items = [{ type: "message", role, content: text }];
  const list = await call<WireList<WireItem>>("POST", path, ofList, {
    items,
    "chatserve:parent_id": parentId,
  });
  return list.data;
}

/** Delete a message with all that follow it; goes through also when the page is left now. */
export async function deleteBranch(sessionId: string, itemId: string): Promise<void> {
  const path = `v1/conversations/${encodeURIComponent(sessionId)}/items`;
  const item = `${path}/${encodeURIComponent(itemId)}?following=true`;
  await call("DELETE", item, ofAny, undefined, { keepalive: true });
}

export interface RequestParts {
  body?: object;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Go on although the page is left. */
  keepalive?: true;
}

/** Return a reply, or throw an error where there is none that has this shape. */
export async function call<T>(
  method: string,
  path: string,
  shape: Shape<T>,
  body?: object,
  parts: RequestParts = {},
): Promise<T> {
  const response = await request(method, path, body === undefined ? parts : { ...parts, body });
  const parsed: unknown = await response.json().catch(() => null);
  if (!response.ok) throw toApiError(response, parsed);
  if (!hasShape(parsed, shape)) throw new ApiError(0, "unreadable", t("error.unreadable"));
  return parsed as T;
}

/** Return a reply, whatever it says, as soon as it begins. */
export async function request(method: string, path: string, parts: RequestParts): Promise<Response> {
  const { body, headers, signal, keepalive } = parts;
  const init: RequestInit = { method };
  if (keepalive !== undefined) init.keepalive = keepalive;
  if (signal !== undefined) init.signal = signal;
  if (body !== undefined) {
    init.headers = { "Content-Type": "application/json", ...headers };
    init.body = toJson(body);
  }
  const response = await fetch(new URL(path, document.baseURI), init).catch(() => {
    throw new ApiError(0, "unreachable", t("error.unreachable"));
  });
  if (response.status === 401) onKeyNeeded();
  return response;
}

export function toApiError(response: Response, parsed: unknown): ApiError {
  const error = (parsed as { error?: WireError } | null)?.error;
  const message = error?.message ?? t("error.status", { status: response.status });
  const code = error?.code ?? `http_${response.status}`;
  return new ApiError(response.status, code, message, toRetryAfterMs(response.headers.get("Retry-After")));
}

/** Something else than the service may have replied: a proxy, or the login page of a network. */
function hasShape(reply: unknown, shape: object): boolean {
  if (kindOf(reply) !== "object") return false;
  const fields = reply as Record<string, unknown>;
  return Object.entries(shape).every(([name, example]) => kindOf(fields[name]) === kindOf(example));
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "array";
  return value === null ? "null" : typeof value;
}
