import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { streamAnswer } from "../src/wire/answer_stream";
import { createSession, deleteSession, listSessions } from "../src/wire/api";
import { Login } from "../src/login";

interface Reply {
  status: number;
  body: object;
}

let sent: { path: string; body: string | undefined }[];
let reply: Reply;
let onChange: ReturnType<typeof vi.fn<() => void>>;
let onLogOut: ReturnType<typeof vi.fn<() => Promise<void>>>;
let login: Login;

beforeEach(() => {
  sent = [];
  vi.stubGlobal("document", { baseURI: "http://localhost/" });
  vi.stubGlobal("fetch", async (url: URL, { body }: { body?: string }) => {
    sent.push({ path: url.pathname, body });
    return Response.json(reply.body, { status: reply.status });
  });
  onChange = vi.fn<() => void>();
  onLogOut = vi.fn<() => Promise<void>>(async () => undefined);
  login = new Login(onLogOut, onChange);
});

afterEach(() => vi.unstubAllGlobals());

/** Give the page storage of every kind that a script can write to; return all that is written. */
function watchStorage(): unknown[] {
  const written: unknown[] = [];
  const note = (...what: unknown[]) => written.push(...what);
  const storage = { getItem: () => null, setItem: note };
  vi.stubGlobal("localStorage", storage);
  vi.stubGlobal("sessionStorage", storage);
  vi.stubGlobal("history", { replaceState: note, pushState: note });
  vi.stubGlobal("indexedDB", { open: note });
  vi.stubGlobal("caches", { open: note });
  vi.stubGlobal("document", {
    baseURI: "http://localhost/",
    set cookie(text: string) {
      note(text);
    },
  });
  return written;
}

function refusal(status: number): Reply {
  return { status, body: { error: { code: "c", message: "No." } } };
}

test("a key is asked for only when the server wants one", async () => {
  reply = { status: 200, body: { tenant: "default", user: "local", role: "operator", key_id: null } };
  await login.identify();
  const wasNeeded = login.isNeeded.value;

  reply = refusal(401);
  await login.identify();

  expect(wasNeeded).toBe(false);
  expect(login.canLogOut.value).toBe(false);
  expect(login.isNeeded.value).toBe(true);
});

test.each([
  ["is away", refusal(503)],
  ["is somebody else's", { status: 200, body: {} }],
])("a server that %s asks for no key, and changes nobody", async (_, other) => {
  reply = { status: 200, body: { tenant: "acme", user: "ann", role: "member", key_id: "key_1" } };
  await login.identify();
  reply = other;
  await login.identify();

  expect(login.isNeeded.value).toBe(false);
  expect(login.owner.value).toBe("acme/ann");
});

test.each([
  ["GET", () => listSessions()],
  ["POST", () => createSession("", "Hello", {})],
  ["DELETE", () => deleteSession("conv_1")],
  ["streaming", () => streamAnswer("resp_1", undefined, new AbortController().signal)],
])("any %s request that is refused for want of a key asks for one", async (_, request) => {
  reply = { status: 200, body: { tenant: "acme", user: "ann", role: "member", key_id: "key_1" } };
  await login.identify();
  reply = refusal(401);
  await request().catch(() => undefined);

  expect(login.isNeeded.value).toBe(true);
  expect(login.owner.value).toBe("");
});

test("a key is sent once, without the blanks around it, and everything begins anew", async () => {
  reply = { status: 200, body: {} };

  await login.logIn("  csk_1\n");

  expect(sent).toEqual([{ path: "/v1/chatserve/login", body: '{"key":"csk_1"}' }]);
  expect(onChange).toHaveBeenCalledOnce();
});

test.each([200, 401])("a key is kept nowhere, whether it is taken or refused (%i)", async (status) => {
  const written = watchStorage();
  reply = status === 200 ? { status, body: {} } : refusal(status);

  await login.logIn("csk_1");

  expect(written).toEqual([]);
  expect(sent).toHaveLength(1);
  expect(onChange).toHaveBeenCalledTimes(status === 200 ? 1 : 0);
});

test("a key that has expired is not called a wrong one", async () => {
  reply = { status: 401, body: { error: { code: "key_expired", message: "no" } } };

  await login.logIn("csk_1");

  expect(login.problem.value).toBe("This key has expired. Ask an operator for another one.");
});

test.each([
  [401, "This is not a valid key. It may have been revoked."],
  [429, "Too many logins have failed. Wait half a minute."],
  [503, "No."],
])("a login that is refused with %i says why and can be tried again", async (status, words) => {
  reply = refusal(status);

  await login.logIn("csk_1");

  expect(login.problem.value).toBe(words);
  expect(login.isBusy.value).toBe(false);
  expect(onChange).not.toHaveBeenCalled();
});

test.each([200, 401])("whoever logs out leaves nothing on the page, after a %d too", async (status) => {
  reply = status === 200 ? { status, body: {} } : refusal(status);

  await login.logOut();

  expect(sent[0]?.path).toBe("/v1/chatserve/logout");
  expect(onLogOut).toHaveBeenCalledOnce();
  expect(onChange).toHaveBeenCalledOnce();
});

test("a login that could not be ended leaves everything as it is, and says so", async () => {
  reply = refusal(503);

  await login.logOut();

  expect(onLogOut).not.toHaveBeenCalled();
  expect(onChange).not.toHaveBeenCalled();
  expect(login.problem.value).toBe("No.");
});
