/** Whatever a browser has kept, of another version of the page or of no page at all. */

import "fake-indexeddb/auto";

import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { readStored } from "../src/chat/stored_session";
import { newAttachment } from "../src/input/attachment";
import { KeptAttachments } from "../src/input/kept_attachments";
import { parseKept, takenOver } from "../src/input/kept_drafts";
import { BrowserDatabase, byTime } from "../src/sessions/browser_database";
import { LastSeen } from "../src/sessions/last_seen";
import { Settings } from "../src/settings";
import { timings, usage } from "./events";
import { FakeLocks, FakeSocket, FakeTab, fakeBrowser, fakeStore, fakeWindow, storedItem } from "./fakes";
import { randomFrom } from "./random";

const seeds = Array.from({ length: 150 }, (_, seed) => seed);
const away = { status: 503, code: "store_unavailable", message: "The store is away." };

// prettier-ignore
const junk = [
  null, true, 0, -1, 1e300, "", "x", "[[[", "null", [], [null], [[]], [5], {}, { id: null }, { text: 7 },
  { data: null }, { length: 3 }, { message: [] }, { cached_tokens: "many" },
];

/** Return a value with one part of it replaced by junk, or left out. */
function spoilt(value: unknown, random: () => number): unknown {
  const names = typeof value === "object" && value !== null ? Object.keys(value) : [];
  if (names.length === 0 || random() < 0.2) return junk[Math.floor(random() * junk.length)];
  const name = names[Math.floor(random() * names.length)]!;
  const copy: Record<string, unknown> = Array.isArray(value)
    ? (([...value] as unknown[]) as unknown as Record<string, unknown>)
    : { ...(value as Record<string, unknown>) };
  if (random() < 0.2) delete copy[name];
  else copy[name] = spoilt(copy[name], random);
  return copy;
}

/** Return it spoilt in one to three places; now and then not even as JSON. */
function spoiltText(value: unknown, random: () => number): string {
  let text = value;
  for (let places = 1 + Math.floor(random() * 3); places > 0; places -= 1) text = spoilt(text, random);
  const json = JSON.stringify(text) ?? "";
  return random() < 0.1 ? json.slice(1) : json;
}

const draft = { text: "old", attached: [{ id: "a1", numBytes: 3 }], atMs: 0 };
const choices = { model: "tiny", persona: { name: "p", variables: { v: "x" } }, fields: { top_k: 1 } };
const keptDrafts = {
  owner: "default/local",
  drafts: {
    conv_1: draft,
    "conv_1/held": draft,
    "conv_1/edit/msg_1": draft,
    "new/tab": draft,
    "new/tab/out/conv_1/a": draft,
    "new/tab/choices": { ...draft, text: JSON.stringify(choices), attached: [] },
  },
};

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test.each(seeds)("drafts are drafts, whatever is kept as such (%i)", (seed) => {
  const { drafts } = parseKept(spoiltText(keptDrafts, randomFrom(seed)));
  const shown = takenOver(drafts, { id: "tab", isNew: seed % 2 === 0 }, new Set(), 0);

  for (const { text, attached, atMs } of Object.values(shown)) {
    expect([typeof text, Array.isArray(attached), typeof atMs]).toEqual(["string", true, "number"]);
    for (const { id, numBytes } of attached) {
      expect([typeof id, typeof numBytes]).toEqual(["string", "number"]);
    }
  }
});

test("a draft that is one is kept beside one that is none", () => {
  const kept = JSON.stringify({ owner: null, drafts: { conv_1: draft, conv_2: { text: "old", atMs: 0 } } });

  expect(parseKept(kept).drafts).toEqual({ conv_1: draft });
});

test.each(seeds)("a message is sent whatever the plain storage has (%i)", async (seed) => {
  const random = randomFrom(seed);
  fakeBrowser();
  fakeWindow();
  fakeStore();
  const tab = new FakeTab();
  const removals = { owner: null, removals: [{ sessionId: "conv_9", itemId: null }] };
  const storage = new Map([
    ["chatserve:drafts", spoiltText(keptDrafts, random)],
    ["chatserve:settings", spoiltText({ language: "de", theme: "dark", enterSends: false }, random)],
    ["chatserve:left-removals", spoiltText(removals, random)],
  ]);
  const left = { sessionId: "conv_1", chosen: choices, noted: choices };
  tab.session.set("chatserve:left-choices", spoiltText(left, random));
  tab.session.set("chatserve:tab", random() < 0.5 ? "tab" : spoiltText("tab", random));
  tab.enter(new FakeLocks(), storage);
  if (seed % 2 === 0) location.hash = "#/c/conv_1";

  const socket = new FakeSocket();
  const app = new App(() => socket as unknown as WebSocket, new Settings());
  app.start();
  socket.accept();
  await vi.advanceTimersByTimeAsync(1_000);
  const { current, drafts } = app;
  app.current.value.parameters.beginWith({ model: null, persona: null, fields: {} });
  drafts.set(current.value.id.value, "Hello");
  await app.sendDraft();
  drafts.keep();

  expect(socket.sent.map(({ type }) => type)).toContain("response.create");
});

describe("of the browser's database", () => {
  const session = { id: "conv_1", title: "", created_at: 0, updated_at: 0, active_response_ids: [] };
  const asked = storedItem("user", "Hello", "msg_1");
  const answered = { "chatserve:usage": usage, "chatserve:timings": timings, "chatserve:parent_id": "msg_1" };
  const failed = { "chatserve:error": { message: "no", code: "timeout" }, "chatserve:response_id": "resp_1" };
  const items = [asked, { ...storedItem("assistant", "Hi!", "msg_2"), ...answered, ...failed }];
  const database = new BrowserDatabase();

  beforeEach(() => {
    vi.stubGlobal("document", { baseURI: "http://chat.test/" });
    fakeStore().refusal = away;
  });

  test.each(seeds)("a copy is shown as it was, or not at all (%i)", async (seed) => {
    const random = randomFrom(seed);
    const lastSeen = new LastSeen();
    await lastSeen.belongTo("acme/ann");
    const page = { data: [session], has_more: false };
    await database.put("sessions", "conv_1", JSON.parse(JSON.stringify(spoilt({ session, items, [byTime]: 0 }, random))) as object);
    await database.put("page", "list", JSON.parse(JSON.stringify(spoilt({ page, pinned: [session] }, random))) as object);

    const shown = await readStored(lastSeen, "conv_1").catch((error: unknown) => error);
    const list = await lastSeen.readList().catch((error: unknown) => error);

    for (const each of [shown, list]) {
      if (each instanceof Error) expect(each.message).toBe(away.message);
    }
    if (shown instanceof Error || list instanceof Error) return;
    const { messages } = shown as Awaited<ReturnType<typeof readStored>>;
    for (const each of messages) {
      const text = each.kind === "answer" ? each.answer.value.text : each.text;
      expect([typeof each.key, typeof text]).toEqual(["string", "string"]);
    }
    const { page: first, pinned } = list as Awaited<ReturnType<LastSeen["readList"]>>;
    for (const { id, title } of [...first.data, ...pinned]) {
      expect([typeof id, typeof title]).toEqual(["string", "string"]);
    }
  });

  test.each(seeds)("an attachment is one or none (%i)", async (seed) => {
    const attachment = newAttachment("a.txt", "one\ntwo");
    const kept = spoilt({ attachment, [byTime]: 0 }, randomFrom(seed));
    await database.put("attachments", "a1", JSON.parse(JSON.stringify(kept)) as object);

    const found = await new KeptAttachments().get("a1");

    if (found !== null) {
      const types = Object.values(found).map((member) => typeof member);
      expect(types).toEqual(["string", "string", "string", "number", "number", "number"]);
    }
  });
});
