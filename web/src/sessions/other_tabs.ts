/**
 * What the tabs of one browser tell each other.
 *
 * Owns the channel. A tab hears only what others say; in a browser without channels, nothing.
 */

export type News =
  /** A session was created, renamed, or has a new turn or the end of one. */
  | { kind: "changed"; sessionId: string }
  | { kind: "deleted"; sessionId: string }
  /** Somebody logged in or out. */
  | { kind: "otherUser" };

const channelName = "chatserve";

export class OtherTabs {
  readonly #channel = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(channelName);

  listen(onNews: (news: News) => void): void {
    if (this.#channel === null) return;
    this.#channel.onmessage = ({ data }: MessageEvent<News>) => onNews(data);
  }

  tell(news: News): void {
    this.#channel?.postMessage(news);
  }
}
