/**
 * Which tab of the browser this is, and which others are open.
 *
 * A tab keeps its name over a reload. While it is open it holds a lock of that name, so that a tab
 * that was duplicated, name and all, finds out and takes another one. Without a secure context a
 * browser has no locks; then nobody knows which other tabs are open.
 */

import { newId } from "../ids";

const storageName = "chatserve:tab";
const lockPrefix = "chatserve:tab:";
const draftsLock = "chatserve:drafts";
/** A page that is reloaded lets go of its lock well within this. */
const reloadMs = 400;

export class Tab {
  #id = newId();
  /** There was no page in this tab before. */
  isNew = true;

  get id(): string {
    return this.#id;
  }

  /** Find out which tab this is. */
  async begin(): Promise<void> {
    const before = keptName();
    this.isNew = before === null || !(await holdAgain(before));
    if (!this.isNew && before !== null) this.#id = before;
    else await hold(this.#id);
    keepName(this.#id);
  }

  /** Return the names of the tabs that are open; null where that is not known. */
  async open(): Promise<ReadonlySet<string> | null> {
    const { held } = (await locks()?.query().catch(() => null)) ?? {};
    if (held === undefined) return null;
    const names = held.flatMap(({ name = "" }) => (name.startsWith(lockPrefix) ? [name] : []));
    return new Set([this.#id, ...names.map((name) => name.slice(lockPrefix.length))]);
  }

  /** Do something that no other tab does at the same time, as far as the browser sees to that. */
  async alone(task: () => Promise<void>): Promise<void> {
    let isDone = false;
    const onceAlone = async () => {
      isDone = true;
      await task();
    };
    await locks()?.request(draftsLock, onceAlone).catch(() => undefined);
    if (!isDone) await task();
  }
}

function locks(): LockManager | undefined {
  return (navigator as Partial<Navigator>).locks;
}

/**
 * Hold the lock that the page before this one may still have; another tab does not let go of it. The
 * wait begins once the browser has answered, so that a slow one is not taken for another tab.
 */
async function holdAgain(name: string): Promise<boolean> {
  if (await hold(name, { ifAvailable: true })) return true;
  return hold(name, { signal: AbortSignal.timeout(reloadMs) });
}

/** Hold the lock of a name as long as the page is there; return whether it was to be had. */
function hold(name: string, options: LockOptions = {}): Promise<boolean> {
  const manager = locks();
  if (manager === undefined) return Promise.resolve(true);
  return new Promise((resolve) => {
    const asLongAsThePage = (lock: Lock | null) => {
      resolve(lock !== null);
      return lock === null ? undefined : new Promise<never>(() => undefined);
    };
    manager.request(lockPrefix + name, options, asLongAsThePage).catch(() => resolve(false));
  });
}

function keptName(): string | null {
  try {
    const name = sessionStorage.getItem(storageName);
    // It becomes part of other names, and must not be cut at the wrong place there.
    return name !== null && /^\w+$/.test(name) ? name : null;
  } catch {
    return null;
  }
}

function keepName(name: string): void {
  try {
    sessionStorage.setItem(storageName, name);
  } catch {
    // Without it the page is a new tab after a reload, and takes over what this one leaves.
  }
}
