import { signal } from "@preact/signals";
import { describe, expect, test } from "vitest";

import { followedAnswer, newAnswer, storedAnswer } from "../src/chat/answer";
import { entriesOf, reuse, wholeText } from "../src/chat/entries";
import {
  branchKeys,
  choose,
  emptyTree,
  followersOf,
  merge,
  pathOf,
  storedKeys,
  withItemIds,
  withMessages,
  withoutBranch,
  type AnswerMessage,
  type Message,
  type MessageTree,
} from "../src/chat/message_tree";

function user(key: string, parentKey: string | null, itemId: string | null = key): Message {
  return { kind: "user", key, parentKey, itemId, text: `text of ${key}` };
}

function answer(key: string, parentKey: string | null, fields: Partial<AnswerMessage> = {}): Message {
  const stored = signal(storedAnswer({ responseId: `resp of ${key}`, text: `(${key})` }));
  return { kind: "answer", key, parentKey, itemId: key, answer: stored, continues: false, ...fields };
}

/** Two questions in the first place, two answers to the second of them. */
const forked = withMessages(emptyTree, [
  user("u1", null),
  answer("a1", "u1"),
  user("u2", null),
  answer("a2", "u2"),
  answer("a3", "u2"),
]);

const keysOf = (messages: readonly Message[]) => messages.map(({ key }) => key);
const entries = (tree: MessageTree) => entriesOf(pathOf(tree), followersOf(tree));

describe("a tree", () => {
  test("shows the newest branch until another one is chosen", () => {
    expect(keysOf(pathOf(forked))).toEqual(["u2", "a3"]);
    expect(keysOf(pathOf(choose(forked, "a2")))).toEqual(["u2", "a2"]);
    expect(keysOf(pathOf(choose(forked, "u1")))).toEqual(["u1", "a1"]);
  });

  test("remembers the way at every fork", () => {
    const away = choose(choose(forked, "a2"), "u1");

    expect(keysOf(pathOf(choose(away, "u2")))).toEqual(["u2", "a2"]);
  });

  test("loses a message with all that follow it, and nothing else", () => {
    expect(branchKeys(forked, "u2")).toEqual(["u2", "a2", "a3"]);
    expect(keysOf(pathOf(withoutBranch(forked, "u2")))).toEqual(["u1", "a1"]);
    expect(keysOf(pathOf(withoutBranch(choose(forked, "a3"), "a3")))).toEqual(["u2", "a2"]);
    expect(forked.messages.size).toBe(5);
  });

  test("whose messages follow each other in a circle is refused, not walked for ever", () => {
    expect(() => pathOf(withMessages(emptyTree, [user("u1", null), user("u1", "u1")]))).not.toThrow();
    const circle = { messages: new Map([["a", user("b", null)], ["b", user("b", "b")]]), chosen: new Map() };
    expect(() => pathOf(circle)).toThrow("circle");
  });
});

describe("merging what the server has", () => {
  const sent = withMessages(emptyTree, [
    user("u1", null),
    answer("a1", "u1"),
    user("user-x", "a1", null),
    answer("answer-x", "user-x", { itemId: null, answer: signal(newAnswer(0)) }),
  ]);
  const named = withItemIds(sent, { "user-x": "msg_3", "answer-x": "msg_4" });
  const stored = [user("u1", null), answer("a1", "u1"), user("msg_3", "a1"), answer("msg_4", "msg_3")];

  test("keeps the keys and the signals of what both know", () => {
    const merged = merge(named, stored, storedKeys(named));

    expect(keysOf(pathOf(merged))).toEqual(["u1", "a1", "user-x", "answer-x"]);
    expect(merged.messages.get("answer-x")).toMatchObject({
      answer: (named.messages.get("answer-x") as AnswerMessage).answer,
    });
  });

  test("knows an answer by its response before it has an item's id", () => {
    const followed = answer("resp", "u1", { itemId: null, answer: signal(followedAnswer("resp_9")) });
    const tree = withMessages(emptyTree, [user("u1", null), followed]);
    const same = answer("msg_2", "u1", { answer: signal(storedAnswer({ responseId: "resp_9" })) });

    expect(keysOf(pathOf(merge(tree, [user("u1", null), same], new Set())))).toEqual(["u1", "resp"]);
  });

  test("keeps what the server has not stored yet, and drops what it no longer has", () => {
    const expected = storedKeys(sent);
    expect([...expected]).toEqual(["u1", "a1"]);

    expect(keysOf(pathOf(merge(sent, stored.slice(0, 2), expected)))).toHaveLength(4);
    expect(keysOf(pathOf(merge(forked, [user("u1", null), answer("a1", "u1")], storedKeys(forked))))).toEqual(
      ["u1", "a1"],
    );
  });

  test("leaves the reader on their branch, and shows what was added at its end", () => {
    const reading = choose(forked, "a1");
    const elsewhere = [...forked.messages.values(), user("u4", "a1"), user("u5", null)];

    expect(keysOf(pathOf(merge(reading, elsewhere, new Set())))).toEqual(["u1", "a1", "u4"]);
  });
});

describe("entries", () => {
  test("tell their siblings and leave the system prompt out", () => {
    const tree = withMessages(emptyTree, [
      { kind: "system", key: "s", parentKey: null, itemId: "s", text: "Be brief." },
      user("u1", "s"),
      answer("a1", "u1"),
      answer("a2", "u1"),
    ]);

    expect(entries(tree)).toMatchObject([
      { key: "u1", siblings: ["u1"] },
      { key: "a2", siblings: ["a1", "a2"] },
    ]);
  });

  test("join an answer and those that continue it", () => {
    const tree = withMessages(emptyTree, [
      user("u1", null),
      answer("a1", "u1"),
      answer("a2", "a1", { continues: true }),
      answer("a3", "a2", { continues: true }),
    ]);
    const joined = entries(tree)[1]!;

    expect(entries(tree)).toHaveLength(2);
    expect(joined).toMatchObject({ key: "a1", lastKey: "a3" });
    expect(joined.kind === "answer" && wholeText(joined)).toBe("(a1)(a2)(a3)");
  });

  test("stay the same objects where nothing changed", () => {
    const first = entries(forked);
    const longer = withMessages(forked, [user("u9", "a3")]);

    const second = reuse(first, entries(longer));

    expect(second[0]).toBe(first[0]);
    expect(second[1]).toBe(first[1]);
    expect(second).toHaveLength(3);
    expect(reuse(first, entries(withMessages(forked, [answer("a4", "u2")])))[1]).not.toBe(first[1]);
  });
});
