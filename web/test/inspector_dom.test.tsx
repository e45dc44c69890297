// @vitest-environment happy-dom
/** The inspector of a chat while it is being stored, field by field. */

import { act } from "preact/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { Settings } from "../src/settings";
import { ParametersSection } from "../src/view/inspector/parameters_section";
import { SystemPromptSection } from "../src/view/inspector/system_prompt_section";
import { fields } from "./descriptions";
import { fakeStore, type FakeStore } from "./fakes";
import { LivingDom } from "./living_dom";

let store: FakeStore;
let app: App;
let dom: LivingDom;
let letItBeStored: () => void;

beforeEach(() => {
  store = fakeStore();
  const { fetch } = globalThis;
  const isDue = new Promise<void>((resolve) => (letItBeStored = resolve));
  vi.stubGlobal("fetch", async (url: URL, init: RequestInit) => {
    if (init.method === "POST") await isDue;
    return fetch(url, init);
  });
  app = new App(() => ({ readyState: 0 }) as WebSocket, new Settings());
  app.offer.models.value = [{ id: "tiny", "chatserve:sampling": [fields.temperature] }];
  dom = new LivingDom();
  document.body.append(dom.root);
});

afterEach(() => {
  dom.draw(null);
  dom.root.remove();
  vi.unstubAllGlobals();
});

async function beStored(): Promise<void> {
  await act(async () => {
    letItBeStored();
    await vi.waitFor(() => expect(app.current.value.id.value).toBe("conv_1"));
  });
}

test("a value that is half written stays, with the focus, when the chat gets its id", async () => {
  dom.draw(<ParametersSection app={app} />);
  void app.send("Hello");
  const field = dom.root.querySelector<HTMLInputElement>("input[type=text]")!;
  field.focus();
  field.value = "0.9x";
  await act(() => void field.dispatchEvent(new Event("input", { bubbles: true })));

  await beStored();

  expect(document.activeElement).toBe(field);
  expect([field.isConnected, field.value]).toEqual([true, "0.9x"]);
});

test("a value that is half written stays in its chat", async () => {
  dom.draw(<ParametersSection app={app} />);
  void app.send("Hello");
  const field = dom.root.querySelector<HTMLInputElement>("input[type=text]")!;
  field.value = "0.9x";
  await act(() => void field.dispatchEvent(new Event("input", { bubbles: true })));

  await act(() => app.newChat());

  expect(dom.root.querySelector<HTMLInputElement>("input[type=text]")!.value).toBe("");
});

test("a system prompt that is being sent cannot be changed any more", async () => {
  app.current.value.systemPrompt.value = "Be brief.";
  dom.draw(<SystemPromptSection app={app} />);
  const before = dom.root.querySelectorAll("textarea").length;

  await act(() => void app.send("Hello"));

  expect([before, dom.root.querySelectorAll("textarea").length]).toEqual([1, 0]);
  expect(dom.root.querySelector("blockquote")!.textContent).toBe("Be brief.");
});

test("a system prompt that could not be stored can be changed again", async () => {
  app.current.value.systemPrompt.value = "Be brief.";
  dom.draw(<SystemPromptSection app={app} />);
  store.refusal = { status: 413, code: "body_too_large", message: "too long" };
  await act(() => void app.send("Hello"));

  await act(async () => {
    letItBeStored();
    await vi.waitFor(() => expect(app.current.value.running.value).toBeNull());
  });

  expect(dom.root.querySelector("textarea")!.value).toBe("Be brief.");
});
