import { signal } from "@preact/signals";
import { renderToString } from "preact-render-to-string";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { newAnswer, storedAnswer, type Answer } from "../src/chat/answer";
import type { AnswerEntry } from "../src/chat/entries";
import type { SamplingValues } from "../src/parameters/sampling";
import { Settings } from "../src/settings";
import { Figures } from "../src/view/figures";
import { Inspector } from "../src/view/inspector/inspector";
import { ParameterControl } from "../src/view/inspector/parameter_control";
import { ModelChoice } from "../src/view/model_choice";
import { PersonaPicker } from "../src/view/persona_picker";
import type { WirePrompt, WireSamplingField } from "../src/wire/protocol";
import { field, fields, persona } from "./descriptions";
import { fakeBrowser, fakeStore, fakeWindow, type FakeStore } from "./fakes";
import { timings, usage } from "./events";

let store: FakeStore;
let app: App;

beforeEach(() => {
  fakeBrowser();
  fakeWindow();
  store = fakeStore();
  app = new App(() => ({}) as WebSocket, new Settings());
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const nothing = () => undefined;

/** Return how much of the bar's hundred parts is drawn as cached, or as computed behind it. */
function widthOf(part: string, html: string): number {
  return Number(new RegExp(`<rect class="${part}" width="([\\d.]+)"`).exec(html)?.[1]);
}

function control(described: WireSamplingField, changed: SamplingValues = {}): string {
  return renderToString(
    <ParameterControl field={described} changed={changed} onChange={nothing} onReset={nothing} />,
  );
}

async function offer(prompts: WirePrompt[]): Promise<void> {
  store.prompts = prompts;
  app.offer.models.value = [{ id: "tiny", max_model_len: 8192, "chatserve:sampling": Object.values(fields) }];
  await app.offer.personas.refresh("default");
}

describe("the control of a field", () => {
  test.each<[string, WireSamplingField, RegExp[]]>([
    ["a number in a range is a slider and a field", fields.temperature, [/type="range"/, /type="text"/, /inputMode="decimal"/i]],
    ["a switch is a checkbox", fields.ignore_eos, [/type="checkbox"/]],
    ["a list of texts is written line by line", fields.stop, [/<textarea/, /One per line/]],
    ["a list of ids is written with commas", fields.stop_token_ids, [/<textarea/, /commas/]],
    ["a field of a later server has its own name", field("mirostat_tau", "number", { default: 5 }), [/>mirostat_tau</, /Default: 5\./]],
    ["the default is told", fields.temperature, [/Default: 0\.2\./, /placeholder="0\.2"/]],
    ["a field that is known is explained", fields.top_p, [/Chooses among the likeliest words/]],
  ])("%s", (_, described, patterns) => {
    const html = control(described);
    for (const pattern of patterns) expect(html).toMatch(pattern);
  });

  test("has a reset once it is changed", () => {
    expect(control(fields.temperature)).not.toContain("Reset Temperature");
    expect(control(fields.temperature, { temperature: 0 })).toContain("Reset Temperature");
    expect(control(fields.temperature, { temperature: 0 })).toMatch(/type="text"[^>]*value="0"|value="0"[^>]*type="text"/);
  });
});

describe("the picker of personas", () => {
  test("is not there where there are none", async () => {
    await offer([]);
    expect(renderToString(<PersonaPicker app={app} />)).toBe("");
    expect(renderToString(<ModelChoice app={app} />)).not.toContain("<select");
  });

  test("tells the first words of each, and how ready it is", async () => {
    await offer([persona("support", { workers: [{ model: "tiny", state: "pinned", num_tokens: 812 }] })]);

    const html = renderToString(<PersonaPicker app={app} />);

    expect(html).toContain("You are support.");
    expect(html).toContain("812 tokens, pinned in the cache");
  });

  test("asks for the values of the one that is picked", async () => {
    await offer([
      persona("letter", {
        variables: [
          { name: "name", default: null },
          { name: "city", default: "Rome" },
        ],
      }),
    ]);
    expect(renderToString(<PersonaPicker app={app} />)).not.toContain("<textarea");

    app.choosePersona("letter");
    const html = renderToString(<PersonaPicker app={app} />);

    expect(html.match(/<textarea/g)).toHaveLength(2);
    expect(html.match(/ required/g)).toHaveLength(1);
    expect(html).toContain('placeholder="Rome"');
  });

  test("has the values right below the one that asks for them", async () => {
    await offer([persona("letter", { variables: [{ name: "city", default: null }] }), persona("support")]);
    app.choosePersona("letter");

    const html = renderToString(<PersonaPicker app={app} />);

    const places = ["You are letter.", "<textarea", "You are support."].map((each) => html.indexOf(each));
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((one, other) => one - other));
  });

  test("is enough for a new chat, whose header does not have them again", async () => {
    await offer([persona("support")]);
    expect(renderToString(<ModelChoice app={app} />)).not.toContain("<select");
  });

  test("shows names and words as text", async () => {
    const markup = "<img src=x onerror=alert(1)>";
    await offer([persona(markup, { excerpt: markup })]);
    expect(renderToString(<PersonaPicker app={app} />)).not.toContain("<img");
  });
});

test("a persona is chosen by its name to the letter, spaces and all", async () => {
  await offer([persona(" two  words ")]);
  app.current.value.parameters.choosePersona("gone ");

  const html = renderToString(<ModelChoice app={app} />);

  expect(html).toContain('value=" two  words "');
  expect(html).toContain('value="gone "');
});

test("a model that was chosen and is away is named in the picker", async () => {
  await offer([]);
  app.current.value.parameters.chooseModel("large");

  const html = renderToString(<ModelChoice app={app} />);

  expect(html).toContain("large, not served now");
  expect(html).toContain("tiny, 8,192 tokens of context");
});

describe("the line under an answer", () => {
  const figures = (answer: Answer) => renderToString(<Figures answer={answer} onInspect={nothing} />);
  const prompt = { total: 40, cached: 32 };

  test("shows the response's own figures, each with its name", () => {
    const html = figures(storedAnswer({ prompt, usage, timings }));

    const shown = [...html.matchAll(/<span[^>]*>([^<]+)<\/span>/g)].map(([, words]) => words);
    expect(shown.slice(0, 4)).toEqual(["32 of 40 prompt tokens cached", "queue 2 ms", "TTFT 32 ms", "61 tokens/s"]);
  });

  test.each([
    [0, 40, 0],
    [10, 40, 25],
    [32, 40, 80],
    [40, 40, 100],
  ])("has a bar in which %i tokens of %i are cached", (cached, total, share) => {
    const html = figures(storedAnswer({ prompt: { total, cached }, usage, timings }));

    expect(widthOf("computed", html)).toBe(100);
    expect(widthOf("cached", html)).toBe(share);
  });

  test("has the time in the queue where there was one", () => {
    expect(figures(storedAnswer({ prompt, usage, timings }))).toContain("queue 2 ms");
    expect(figures(storedAnswer({ prompt, usage, timings: { ...timings, queue_ms: 0.3 } }))).not.toContain("queue ");
  });

  test("has no rate before the answer ends", () => {
    const html = figures({ ...newAnswer(0), phase: "streaming", prompt, timings: { ...timings, ttft_ms: 48, tok_s: null } });
    expect(html).toContain("TTFT 48 ms");
    expect(html).not.toContain("tokens/s");
  });
});

describe("the inspector", () => {
  const answered = (text: string, answer: Partial<Answer>): AnswerEntry => ({
    kind: "answer",
    key: text,
    lastKey: text,
    siblings: [text],
    before: [],
    answer: signal(storedAnswer({ text, usage, ...answer })),
  });

  function render(entries: AnswerEntry[]): string {
    const current = { ...app.current.value, entries: signal(entries) };
    return renderToString(<Inspector app={{ ...app, current: signal(current) } as unknown as App} />);
  }

  test("has a control for each field of the model", async () => {
    await offer([]);
    const html = render([]);
    expect(html.match(/class="parameter"/g)).toHaveLength(Object.keys(fields).length);
    expect(html).toContain("There is no answer yet.");
  });

  test("tells everything of the last answer, or of the one that was picked", async () => {
    await offer([]);
    const entries = [
      answered("a", { responseId: "resp_a", phase: "cut" }),
      answered("b", { responseId: "resp_b", timings, prompt: { total: 40, cached: 32 } }),
    ];

    const last = render(entries);
    app.inspect("a");
    const first = render(entries);

    for (const words of ["Answer 2 of 2", "resp_b", "by itself", "61 tokens/s", "Queue"]) {
      expect(last).toContain(words);
    }
    for (const words of ["Answer 1 of 2", "resp_a", "at the limit of tokens", "Show the last one"]) {
      expect(first).toContain(words);
    }
  });
});
