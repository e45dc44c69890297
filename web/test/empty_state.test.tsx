import { renderToString } from "preact-render-to-string";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { Settings } from "../src/settings";
import { EmptyState } from "../src/view/empty_state";
import { FakeSocket, fakeBrowser, fakeWindow } from "./fakes";

beforeEach(() => {
  fakeBrowser();
  fakeWindow();
});

afterEach(() => {
  vi.unstubAllGlobals();
});

test.each([
  ["nobody needs a key", null, true],
  ["there is a key already", "key_1", false],
])("where %s, it tells how others are let in: %s, %s", (_state, key_id, isTold) => {
  const app = new App(() => new FakeSocket() as unknown as WebSocket, new Settings());
  app.login.identity.value = { tenant: "default", user: "local", role: "member", key_id };

  const html = renderToString(<EmptyState app={app} session={app.current.value} />);

  expect(html.includes("chatserve tenant add")).toBe(isTold);
});

test("while nothing is known of a key, nothing is said of it", () => {
  const app = new App(() => new FakeSocket() as unknown as WebSocket, new Settings());

  const html = renderToString(<EmptyState app={app} session={app.current.value} />);

  expect(html).not.toContain("chatserve tenant add");
});

test("a chat that stands for a conversation of somebody else says why", () => {
  const app = new App(() => new FakeSocket() as unknown as WebSocket, new Settings());
  const show = () => renderToString(<EmptyState app={app} session={app.current.value} />);
  const before = show();

  app.hasMissed.value = true;

  expect(before).not.toContain("not among yours");
  expect(show()).toContain("not among yours");
});
