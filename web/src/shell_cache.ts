/**
 * The files of one build of the page, kept in the browser.
 *
 * Owns which requests are answered from there: the document when the server has none, files with a
 * hash in their name at once, and nothing else. Knows nothing of conversations.
 */

export interface Shell {
  version: string;
  /** Relative to the page's folder, which is "./". */
  list: readonly string[];
}

/** A request of the page, and what may outlast its reply. */
export interface Fetching {
  readonly request: Request;
  waitUntil(work: Promise<unknown>): void;
}

const prefix = "chatserve-shell-";
/** A server that is silent for so long is as good as away. */
const documentLimitMs = 4_000;

export class ShellCache {
  readonly #name: string;
  readonly #urls: readonly string[];
  readonly #root: string;

  /** `root` is the address of the page's folder. */
  constructor({ version, list }: Shell, root: string) {
    this.#name = `${prefix}${version}`;
    this.#urls = list.map((path) => new URL(path, root).href);
    this.#root = root;
  }

  /** Fetch what is missing. */
  async fill(): Promise<void> {
    const cache = await caches.open(this.#name);
    await cache.addAll([...this.#urls]);
  }

  /** Drop what other versions have kept. */
  async dropOthers(): Promise<void> {
    for (const name of await caches.keys()) {
      if (name.startsWith(prefix) && name !== this.#name) await caches.delete(name);
    }
  }

  /** Return the reply to a request, or null for one that is none of the page's business. */
  replyTo(fetching: Fetching): Promise<Response> | null {
    const { request } = fetching;
    if (request.method !== "GET") return null;
    const url = new URL(request.url);
    if (request.mode === "navigate") {
      return url.origin + url.pathname === this.#root ? this.#document(fetching) : null;
    }
    if (url.href.startsWith(`${this.#root}assets/`)) return this.#asset(fetching);
    return this.#urls.includes(url.href) ? this.#fresh(request) : null;
  }

  /** The document as the server has it now, so that a new build is used at once. */
  async #document(fetching: Fetching): Promise<Response> {
    try {
      const reply = await fetch(fetching.request, { signal: AbortSignal.timeout(documentLimitMs) });
      if (reply.ok) this.#keep(this.#root, reply, fetching);
      if (reply.status < 500) return reply;
      return (await this.#kept(this.#root)) ?? reply;
    } catch (error) {
      return this.#keptOrThrow(this.#root, error);
    }
  }

  /** A file whose name says what is in it. */
  async #asset(fetching: Fetching): Promise<Response> {
    const { request } = fetching;
    const kept = await this.#kept(request.url);
    if (kept !== undefined) return kept;
    const reply = await fetch(request);
    if (reply.ok) this.#keep(request.url, reply, fetching);
    return reply;
  }

  async #fresh(request: Request): Promise<Response> {
    try {
      return await fetch(request);
    } catch (error) {
      return this.#keptOrThrow(request.url, error);
    }
  }

  async #keptOrThrow(url: string, error: unknown): Promise<Response> {
    const kept = await this.#kept(url);
    if (kept === undefined) throw error;
    return kept;
  }

  async #kept(url: string): Promise<Response | undefined> {
    try {
      const cache = await caches.open(this.#name);
      return await cache.match(url);
    } catch {
      return undefined;
    }
  }

  /** Keep a reply beside handing it on: a browser whose storage is full shows the page all the same. */
  #keep(url: string, reply: Response, fetching: Fetching): void {
    const copy = reply.clone();
    const kept = caches.open(this.#name).then((cache) => cache.put(url, copy));
    fetching.waitUntil(kept.catch(() => undefined));
  }
}
