import { describe, expect, test } from "vitest";

import {
  choicesIn,
  mergeChoices,
  noChoices,
  withChoices,
  type Choices,
  type Metadata,
} from "../src/parameters/choices";
import { obstacleOfChoices } from "../src/parameters/obstacle";
import { promptField } from "../src/parameters/personas";
import { readinessOf } from "../src/parameters/readiness";
import { persona } from "./descriptions";

const choices: Choices = {
  model: "tiny",
  persona: { name: "letter", variables: { name: "Ada" } },
  fields: { temperature: 0, stop: ["\n\n"] },
};

describe("a note of choices", () => {
  test.each<[string, Choices]>([
    ["few", choices],
    ["none", noChoices],
    ["long", { ...choices, persona: { name: "letter", variables: { name: "😀漢".repeat(900) } } }],
  ])("comes back when they are %s", (_, chosen) => {
    expect(choicesIn(withChoices({}, chosen)!)).toEqual(chosen);
  });

  test("leaves what others have noted, and nothing of an earlier note", () => {
    const long = { ...choices, persona: { name: "x", variables: { a: "b".repeat(2_000) } } };
    const before = withChoices({ theirs: "1" }, long)!;

    const after = withChoices(before, choices)!;

    expect(Object.keys(after)).toHaveLength(2);
    expect(after["theirs"]).toBe("1");
    expect(withChoices(after, noChoices)).toEqual({ theirs: "1" });
  });

  test("keeps to what the server takes", () => {
    const note = withChoices({}, { ...choices, persona: { name: "x", variables: { a: "😀".repeat(5_000) } } })!;
    for (const value of Object.values(note)) expect([...value].length).toBeLessThanOrEqual(512);
    expect(withChoices({}, { ...choices, fields: { stop: ["x".repeat(9_000)] } })).toBeNull();
  });

  test.each<[string, Metadata]>([
    ["nothing", {}],
    ["no JSON", { chatserve_page_0: "{" }],
    ["a list", { chatserve_page_0: "[1]" }],
    ["null", { chatserve_page_0: "null" }],
    ["other types", { chatserve_page_0: '{"model": 1, "persona": "x", "fields": {"a": {}, "b": [1, "x"]}}' }],
  ])("that holds %s stands for no choice", (_, metadata) => {
    expect(choicesIn(metadata)).toEqual(noChoices);
  });
});

test("what was chosen in two places is all kept, and one's own wins", () => {
  const base: Choices = { ...noChoices, fields: { temperature: 1, seed: 1 } };
  const mine: Choices = { ...noChoices, model: "tiny", fields: { temperature: 0 } };
  const theirs: Choices = { ...noChoices, fields: { temperature: 2, seed: 1, top_p: 0.5 } };

  expect(mergeChoices(base, mine, theirs)).toEqual({
    model: "tiny",
    persona: null,
    fields: { temperature: 0, top_p: 0.5 },
  });
});

describe("an obstacle", () => {
  const letter = persona("letter", {
    variables: [
      { name: "name", default: null },
      { name: "tone", default: "" },
    ],
  });

  test.each<[string, Choices, string | null]>([
    ["nothing chosen", noChoices, null],
    ["all is there", choices, null],
    ["a model that is away", { ...noChoices, model: "large" }, "The model large is not served now."],
    ["a persona that is gone", { ...noChoices, persona: { name: "x", variables: {} } }, "There is no persona x any more."],
    ["a value that is missing", { ...noChoices, persona: { name: "letter", variables: {} } }, "The persona letter needs a value for “name”."],
  ])("with %s", (_, chosen, words) => {
    const told = obstacleOfChoices(chosen, [{ id: "tiny" }], [letter]);
    if (words === null) expect(told).toBeNull();
    else expect(told).toContain(words);
  });

  test("is not seen before anything is known", () => {
    const chosen: Choices = { ...choices, model: "large" };
    expect(obstacleOfChoices(chosen, [], null)).toBeNull();
  });
});

test("values of variables that a newer version no longer has are not sent", () => {
  const chosen = { name: "letter", variables: { name: "Ada", city: "Rome" } };
  const prompt = persona("letter", { variables: [{ name: "city", default: null }] });
  expect(promptField(chosen, prompt)).toEqual({ id: "letter", variables: { city: "Rome" } });
  expect(promptField(chosen, null)).toEqual({ id: "letter", variables: chosen.variables });
});

test("a persona is as ready as the best worker of the model has it", () => {
  const prompt = persona("x", {
    workers: [
      { model: "tiny", state: "warming", num_tokens: 0 },
      { model: "tiny", state: "cached", num_tokens: 12 },
      { model: "large", state: "pinned", num_tokens: 13 },
    ],
  });
  expect(readinessOf(prompt, "tiny")).toEqual({ state: "cached", numTokens: 12 });
  expect(readinessOf(prompt, "none")).toBeNull();
});
