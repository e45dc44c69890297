/** A long conversation is shown from its end, while the rest is on its way. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";

import type { WireItem } from "../src/wire/protocol";
import { storedItem } from "./fakes";
import { Harness, options } from "./harness";

let page: Harness;
let release: () => void;

beforeEach(() => {
  page = new Harness();
  page.socket().accept();
  page.store.items = turns(60);
  release = holdRest();
});

afterEach(() => page.end());

function turns(numTurns: number): WireItem[] {
  return Array.from({ length: numTurns }, (_, turn) => [
    storedItem("user", `question ${turn}`, `msg_q${turn}`),
    storedItem("assistant", `answer ${turn}`, `msg_a${turn}`),
  ]).flat();
}

/** Let no page of messages through but the first, until the function that is returned is called. */
function holdRest(): () => void {
  let open = () => {};
  const isOpen = new Promise<void>((resolve) => (open = resolve));
  const { fetch } = globalThis;
  vi.stubGlobal("fetch", async (url: URL, init: RequestInit) => {
    if (url.searchParams.has("after")) await isOpen;
    return fetch(url, init);
  });
  return open;
}

const keys = () => page.session.entries.value.map(({ key }) => key);

test("its end is there first, and stays the same when the rest comes", async () => {
  const opening = page.session.open("conv_1");
  await page.settle();
  const end = page.session.entries.value;
  const before = { load: page.session.load.value.kind, hasEarlier: page.session.hasEarlier.value };

  release();
  await opening;

  expect(before).toEqual({ load: "ready", hasEarlier: true });
  expect(end.at(-1)!.key).toBe("msg_a59");
  expect(end.length).toBeLessThan(30);
  expect(keys()).toEqual(page.store.items.map(({ id }) => id));
  expect(page.session.entries.value.slice(-end.length)).toEqual(end);
  expect(page.session.hasEarlier.value).toBe(false);
});

test("what is said meanwhile follows the end, and stays there", async () => {
  const opening = page.session.open("conv_1");
  await page.settle();

  await page.say("Hello");
  release();
  await opening;

  expect(page.sent("response.create")[0]).toMatchObject({ "chatserve:parent_id": "msg_a59" });
  expect(page.session.entries.value).toHaveLength(122);
  expect(page.session.entries.value.at(-2)).toMatchObject({ kind: "user", text: "Hello" });
});

test("another answer to the first message that is there follows the message before it", async () => {
  const opening = page.session.open("conv_1");
  await page.settle();
  const [first] = page.session.entries.value;
  const parent = page.store.items.at(page.store.items.findIndex(({ id }) => id === first!.key) - 1);

  await page.session.rewrite(first!.key, "Otherwise", options);
  release();
  await opening;

  expect(page.sent("response.create")[0]).toMatchObject({ "chatserve:parent_id": parent!.id });
  expect(page.session.entries.value.at(-2)).toMatchObject({ kind: "user", text: "Otherwise" });
  expect(keys()).toContain("msg_q0");
});

test("the branch that was written to last is shown, whatever stands beside it", async () => {
  page.store.items = [
    ...turns(60),
    { ...storedItem("user", "elsewhere", "msg_other"), "chatserve:parent_id": "msg_a1" },
  ];
  const opening = page.session.open("conv_1");
  await page.settle();
  const end = keys();

  release();
  await opening;

  expect(end).toEqual(["msg_other"]);
  expect(keys()).toEqual(["msg_q0", "msg_a0", "msg_q1", "msg_a1", "msg_other"]);
});

test("a message in the rest that was asked for is waited for", async () => {
  page.session.goTo("msg_q3");
  const opening = page.session.open("conv_1");
  await page.settle();
  const before = page.session.load.value.kind;

  release();
  await opening;

  expect(before).toBe("loading");
  expect(keys()).toContain("msg_q3");
});

test("without the rest the end stays, and the rest is there the next time", async () => {
  const opening = page.session.open("conv_1");
  await page.settle();
  const refusal = { status: 503, code: "store_unavailable", message: "The store is away." };
  page.store.refusal = refusal;
  release();
  await opening;
  const before = [page.session.load.value.kind, keys().at(-1)];
  page.store.refusal = null;

  const hasChanged = await page.lastSeen.hasChanged("conv_1");
  await page.session.catchUp();

  expect(before).toEqual(["ready", "msg_a59"]);
  expect(hasChanged).toBe(true);
  expect(keys()).toHaveLength(120);
});
