/**
 * Which answers this tab follows, and what is said about them on the socket.
 *
 * Owns the followed answers, their lanes and the events that wait for the next frame. An answer is
 * either accepted, and a new socket resumes it after the last event applied; or it is not, and the
 * new socket gets its `response.create` again, which the server answers by the same response if
 * the first one arrived.
 *
 * An accepted answer of which nothing is heard is resumed, too: its last events may be lost.
 *
 * A lane names an answer on the wire. Lanes are reused in turn: few enough for the server's limit,
 * and late enough that no straggler of an earlier answer meets the next one on its lane.
 */

import { batch, type Signal } from "@preact/signals";

import {
  failAnswer,
  isSettled,
  reduceAnswer,
  requestStop,
  stopUnsent,
  type Answer,
} from "./answer";
import type { Connection } from "../wire/connection";
import { oncePerFrame } from "../frames";
import { t } from "../i18n/catalogue";
import { newId } from "../ids";
import { isAnswerEvent, type AnswerEvent, type CreateMessage, type ServerEvent } from "../wire/protocol";
import { Watchdog } from "./watchdog";

const numLanes = 24;
const maxSends = 3;

export interface FollowedHooks {
  /** The server stored the turn and gave the answer its id. */
  onAccepted(followed: Followed): void;
  onSettled(followed: Followed): void;
  /** The answer cannot be resumed; only the stored session can tell what became of it. */
  onLost(followed: Followed): void;
}

export interface Followed {
  readonly lane: string;
  readonly answer: Signal<Answer>;
  readonly hooks: FollowedHooks;
  readonly watchdog: Watchdog;
  /** The one frame that creates the answer; null until its session exists. */
  create: CreateMessage | null;
  /** How often `create` went out. */
  numSends: number;
}

/** What an answer is asked for with; see `CreateMessage`. */
export interface Turn {
  model: string;
  conversation: string;
  input: string | [];
  [field: string]: unknown;
}

interface Arrival {
  followed: Followed;
  event: AnswerEvent;
}

export class AnswerFeed {
  readonly #followed = new Map<string, Followed>();
  readonly #connection: () => Connection;
  #arrivals: Arrival[] = [];
  #lastLane = 0;
  #scheduleDrain = oncePerFrame(() => this.#drain());

  /** `connection` is asked for late: the two know each other. */
  constructor(connection: () => Connection) {
    this.#connection = connection;
  }

  /** Follow an answer: one known by its id, or one that `create` will ask for. */
  follow(answer: Signal<Answer>, hooks: FollowedHooks): Followed {
    const lane = this.#freeLane();
    const watchdog = new Watchdog(() => this.#askAfter(followed));
    const followed: Followed = { lane, answer, hooks, watchdog, create: null, numSends: 0 };
    this.#followed.set(lane, followed);
    this.#speak(followed);
    return followed;
  }

  /** Give the turn of a followed answer to the server, once its session exists. */
  create(followed: Followed, turn: Turn): void {
    followed.create = {
      type: "response.create",
      stream_id: followed.lane,
      event_id: newId(),
      ...turn,
    };
    this.#speak(followed);
  }

  /** End an answer. What never left this page ends here; the rest when the server says so. */
  stop(followed: Followed): void {
    const answer = followed.answer.value;
    if (isSettled(answer) || answer.isStopping) return;
    followed.answer.value = requestStop(answer);
    if (answer.responseId === null && followed.numSends === 0) {
      this.#settle(followed, stopUnsent(followed.answer.value));
    } else {
      this.#sendCancel(followed);
    }
  }

  /** End an answer that cannot go on, for a reason found outside the socket. */
  fail(followed: Followed, code: string, message: string): void {
    if (isSettled(followed.answer.value)) return;
    this.#settle(followed, failAnswer(followed.answer.value, { code, message }));
  }

  /** Forget an answer without ending it. */
  release(followed: Followed): void {
    followed.watchdog.stop();
    if (this.#followed.get(followed.lane) === followed) this.#followed.delete(followed.lane);
  }

  /** A socket is open: pick up every answer where it stands. */
  onLive(): void {
    for (const followed of this.#followed.values()) this.#speak(followed);
  }

  onEvent(event: ServerEvent): void {
    if (!isAnswerEvent(event)) return;
    const followed = this.#followed.get(event.stream_id ?? "");
    if (followed === undefined) return;
    this.#arrivals.push({ followed, event });
    this.#scheduleDrain();
  }

  #freeLane(): string {
    do {
      this.#lastLane = (this.#lastLane % numLanes) + 1;
    } while (this.#followed.has(`answer-${this.#lastLane}`) && this.#followed.size < numLanes);
    return `answer-${this.#lastLane}`;
  }

  #speak(followed: Followed): void {
    if (followed.answer.value.responseId !== null) this.#sendResume(followed);
    else if (followed.create !== null) this.#sendCreate(followed, followed.create);
    else return;
    if (followed.answer.value.isStopping) this.#sendCancel(followed);
  }

  /** A frame that ends every connection it is sent on would do so for ever. */
  #sendCreate(followed: Followed, create: CreateMessage): void {
    if (followed.numSends === maxSends) {
      this.fail(followed, "undeliverable", t("answer.undeliverable"));
    } else if (this.#connection().send(create)) {
      followed.numSends += 1;
    }
  }

  #sendResume({ answer, lane, watchdog }: Followed): boolean {
    const { responseId, lastSequence } = answer.value;
    if (responseId === null) return false;
    watchdog.start();
    return this.#connection().send({
      type: "chatserve:response.resume",
      stream_id: lane,
      response_id: responseId,
      ...(lastSequence >= 0 && { starting_after: lastSequence }),
    });
  }

  /** Over HTTP an answer has a stream to itself, whose end is no event that can be lost. */
  #askAfter(followed: Followed): boolean {
    const state = this.#connection().state.value;
    return state.kind === "live" && state.via === "socket" && this.#sendResume(followed);
  }

  #sendCancel({ answer, lane }: Followed): void {
    const { responseId } = answer.value;
    this.#connection().send({
      type: "response.cancel",
      ...(responseId === null ? { stream_id: lane } : { response_id: responseId }),
    });
  }

  #drain(): void {
    const arrivals = this.#arrivals;
    this.#arrivals = [];
    batch(() => {
      for (const arrival of arrivals) this.#apply(arrival);
    });
  }

  #apply({ followed, event }: Arrival): void {
    const before = followed.answer.value;
    if (isSettled(before)) return;
    if (event.type === "error" && before.responseId !== null) {
      followed.hooks.onLost(followed);
      return;
    }
    const after = reduceAnswer(before, event, Date.now());
    followed.answer.value = after;
    if (after !== before) followed.watchdog.heard();
    if (canBeFilled(after) && !canBeFilled(before)) this.#sendResume(followed);
    if (before.responseId === null && after.responseId !== null) this.#onAccepted(followed);
    if (isSettled(after)) this.#settle(followed, after);
  }

  /** A stop that was asked for before the answer had an id is repeated with it. */
  #onAccepted(followed: Followed): void {
    followed.watchdog.start();
    followed.hooks.onAccepted(followed);
    if (followed.answer.value.isStopping) this.#sendCancel(followed);
  }

  #settle(followed: Followed, answer: Answer): void {
    followed.answer.value = answer;
    this.release(followed);
    followed.hooks.onSettled(followed);
  }
}

/** Return whether an answer lacks an event that can be asked for: that takes its name. */
function canBeFilled({ hasGap, responseId }: Answer): boolean {
  return hasGap && responseId !== null;
}
