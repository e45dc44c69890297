/**
 * The page's tables in the browser's own database, with promises.
 *
 * Owns their shape. A browser may refuse any of it (a private window, a full disk); then the
 * promise is rejected, and what was to be kept is not.
 */

const databaseName = "chatserve";
const version = 2;
/** A database that has not opened by then is refused for as long as the page is open. */
const openLimitMs = 1_000;

export type Table = "sessions" | "attachments" | "page";
/** Sessions and attachments by the time they were kept, oldest first. */
export const byTime = "keptAtMs";

export class BrowserDatabase {
  #opened: Promise<IDBDatabase> | null = null;

  /** Return what is kept, which may be of any shape. */
  async get(table: Table, key: string): Promise<unknown> {
    return this.#do(table, "readonly", (store) => store.get(key) as IDBRequest<unknown>);
  }

  async put(table: Table, key: string, value: object | string): Promise<void> {
    await this.#do(table, "readwrite", (store) => store.put(value, key));
  }

  async delete(table: Table, key: string): Promise<void> {
    await this.#do(table, "readwrite", (store) => store.delete(key));
  }

  async clear(table: Table): Promise<void> {
    await this.#do(table, "readwrite", (store) => store.clear());
  }

  /** Return the keys, the one kept longest ago first. */
  async keysByTime(table: "sessions" | "attachments"): Promise<string[]> {
    const keys = await this.#do(table, "readonly", (store) => store.index(byTime).getAllKeys());
    return keys as string[];
  }

  async #do<T>(
    table: Table,
    mode: IDBTransactionMode,
    ask: (store: IDBObjectStore) => IDBRequest<T>,
  ): Promise<T> {
    this.#opened ??= open();
    const database = await this.#opened;
    return settled(ask(database.transaction(table, mode).objectStore(table)));
  }
}

async function open(): Promise<IDBDatabase> {
  const request = indexedDB.open(databaseName, version);
  request.onupgradeneeded = ({ oldVersion }) => {
    if (oldVersion < 1) {
      request.result.createObjectStore("sessions").createIndex(byTime, byTime);
      request.result.createObjectStore("page");
    }
    request.result.createObjectStore("attachments").createIndex(byTime, byTime);
  };
  const database = await Promise.race([settled(request), refusal(openLimitMs)]);
  // A page of a later version, in another tab, has other tables.
  database.onversionchange = () => database.close();
  return database;
}

async function refusal(afterMs: number): Promise<never> {
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  throw new Error("the browser's database is silent");
}

function settled<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the browser's database refused"));
  });
}
