/**
 * Keeps the page in step with the reader's other tabs and devices.
 *
 * Owns when it is looked whether the session on the screen has gone on elsewhere: when another tab
 * says so, and for other devices every few seconds while the page is in view. One small request
 * asks; only if the answer is yes the session is read again.
 */

import type { OpenSession } from "../chat/open_session";
import type { LastSeen } from "./last_seen";
import { OtherTabs, type News } from "./other_tabs";
import type { SessionList } from "./session_list";

const checkEveryMs = 15_000;
/** After a turn of one's own, until its last events are applied and drawn. */
const settleMs = 2_000;

export interface InStepHooks {
  /** The session on the screen. */
  current(): OpenSession;
  /** Whether a request makes sense. */
  isLive(): boolean;
  onOtherUser(): void;
}

export class InStep {
  readonly #tabs = new OtherTabs();
  readonly #lastSeen: LastSeen;
  readonly #list: SessionList;
  readonly #hooks: InStepHooks;
  #settleTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(lastSeen: LastSeen, list: SessionList, hooks: InStepHooks) {
    this.#lastSeen = lastSeen;
    this.#list = list;
    this.#hooks = hooks;
  }

  start(): void {
    this.#tabs.listen((news) => void this.#hear(news));
    setInterval(() => {
      if (!document.hidden) void this.check();
    }, checkEveryMs);
  }

  /** Tell the other tabs. */
  tell(news: News): void {
    this.#tabs.tell(news);
  }

  /** Look after the session on the screen, unless it is busy anyway. */
  async check(): Promise<void> {
    const session = this.#hooks.current();
    const sessionId = session.id.value;
    if (sessionId === null || session.running.value !== null || !this.#hooks.isLive()) return;
    const { kind } = session.load.value;
    if (kind === "failed") await session.open(sessionId);
    if (kind !== "ready") return;
    if (await this.#lastSeen.hasChanged(sessionId)) await session.catchUp();
  }

  /** Look after it once a turn of this tab has come to rest. */
  checkSoon(): void {
    clearTimeout(this.#settleTimer);
    this.#settleTimer = setTimeout(() => void this.check(), settleMs);
  }

  async #hear(news: News): Promise<void> {
    if (news.kind === "otherUser") {
      this.#hooks.onOtherUser();
      return;
    }
    // A hidden page reads its list when it is shown again.
    if (!document.hidden) void this.#list.refresh();
    if (news.sessionId === this.#hooks.current().id.value) await this.check();
  }
}
