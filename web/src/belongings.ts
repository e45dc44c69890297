/**
 * What this browser keeps of a user, and what becomes of it when somebody else uses the page.
 *
 * Owns the answer to whether the page still keeps anything. Nothing of one user is left for another:
 * who logs out leaves nothing, and a page on which the user has changed begins anew. A login that has
 * run out leaves the drafts with their attachments, to whoever logs in next if that is the same user.
 */

import { effect } from "@preact/signals";

import type { Unsent } from "./input/unsent";
import { eraseStorage } from "./kept";
import { nobody, type Login } from "./login";
import type { LastSeen } from "./sessions/last_seen";

export class Belongings {
  readonly #login: Login;
  readonly #unsent: Unsent;
  readonly #lastSeen: LastSeen;
  #isIdentifying = false;
  #isLeaving = false;

  constructor(login: Login, unsent: Unsent, lastSeen: LastSeen) {
    this.#login = login;
    this.#unsent = unsent;
    this.#lastSeen = lastSeen;
  }

  /** What is in this page belongs to somebody who is gone, and is not kept any more. */
  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** Forget what a login has shown as soon as it is over. */
  start(): void {
    effect(() => {
      if (this.#login.isNeeded.value) void this.#lastSeen.belongTo(nobody);
    });
  }

  /** Find out whose the page is, and show what was kept for them; return whether it stays theirs. */
  async identify(): Promise<boolean> {
    // Whoever asks meanwhile gets the answer to the question that is under way.
    if (this.#isIdentifying) return false;
    const before = this.#login.owner.value;
    this.#isIdentifying = true;
    await this.#login.identify();
    this.#isIdentifying = false;
    const owner = this.#login.owner.value;
    if (owner === nobody) return false;
    if (before !== null && owner !== null && owner !== before) {
      this.startOver();
      return false;
    }
    await this.#unsent.restore(owner, this.#lastSeen.belongTo(owner));
    return true;
  }

  /** The page of another user begins anew; nothing of this one's is kept on the way. */
  startOver(): void {
    this.#isLeaving = true;
    location.reload();
  }

  async leaveNothing(): Promise<void> {
    this.#isLeaving = true;
    await Promise.all([this.#unsent.erase(), this.#lastSeen.belongTo(nobody)]);
  }

  /** Drop all that this browser keeps, and begin anew. */
  async erase(): Promise<void> {
    await this.leaveNothing();
    eraseStorage();
    location.reload();
  }
}
