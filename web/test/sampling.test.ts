import { describe, expect, test } from "vitest";

import { speak } from "../src/i18n/catalogue";
import { defaultOf, fieldsToSend, problemOf } from "../src/parameters/sampling";
import {
  conflictOf,
  defaultWords,
  formatValue,
  labelOf,
  meaningOf,
  parseValue,
  sliderOf,
  valueWords,
} from "../src/parameters/written_values";
import type { WireSamplingField, WireSamplingValue } from "../src/wire/protocol";
import { field, fields } from "./descriptions";

describe("a value", () => {
  test.each<[string, WireSamplingField, WireSamplingValue, string | null]>([
    ["within its bounds", fields.temperature, 0, null],
    ["below its minimum", fields.temperature, -0.1, "This must be at least 0."],
    ["above its maximum", fields.temperature, 2.1, "This must be at most 2."],
    ["at an exclusive minimum", fields.top_p, 0, "This must be above 0."],
    ["at an exclusive maximum", field("seed", "integer", { maximum: 9, exclusive_maximum: true }), 9, "This must be below 9."],
    ["that is not whole", fields.top_k, 1.5, "This must be a whole number."],
    ["that a browser would round", fields.seed, 2 ** 60, "This number is too large for a browser to keep exactly."],
    ["without an end", fields.temperature, Infinity, "This must be a number."],
    ["of another type", fields.ignore_eos, 1, "This is not a value that the field can have."],
    ["of a list", fields.stop, ["\n\n", "END"], null],
    ["in a list that is too long", fields.stop, ["a", "b", "c"], "There may be at most 2 of them."],
    ["in a list and too long", fields.stop, ["abcdef"], "Each may have at most 5 characters."],
    ["in a list of ids below zero", fields.stop_token_ids, [-1], "This must be at least 0."],
    ["in a list of another type", fields.stop_token_ids, ["a"], "This is not a value that the field can have."],
  ])("%s", (_, described, value, problem) => {
    expect(problemOf(described, value)).toBe(problem);
  });

  test("is checked next to the others", () => {
    const shorter = "“Shortest answer” must not exceed “Longest answer”.";
    expect(conflictOf("min_tokens", 2_000, {})).toBe(shorter);
    expect(conflictOf("min_tokens", 2_000, { max_output_tokens: 3_000 })).toBeNull();
    expect(conflictOf("max_output_tokens", 5, { min_tokens: 9 })).toBe(shorter);
    expect(conflictOf("temperature", 5, { min_tokens: 9, max_output_tokens: 1 })).toBeNull();
  });
});

describe("what is written", () => {
  test.each<[WireSamplingField, string, WireSamplingValue | null | undefined]>([
    [fields.temperature, "0.7", 0.7],
    [fields.temperature, " 0,7 ", 0.7],
    [fields.temperature, "", undefined],
    [fields.temperature, "hot", null],
    [fields.temperature, "1e999", null],
    [fields.temperature, "0x1", null],
    [fields.temperature, "1,000", 1],
    [fields.temperature, "９.５", 9.5],
    [fields.top_k, "-1", -1],
    [fields.top_k, "−1", -1],
    [fields.top_k, "2,000", 2000],
    [fields.top_k, "2.000", 2000],
    [fields.top_k, "1\u202f234\u202f567", 1234567],
    [fields.top_k, "1’234", 1234],
    [fields.top_k, "1,234.567", null],
    [fields.top_k, "1.5", 1.5],
    [fields.top_k, "0b11", null],
    [fields.top_k, "１２", 12],
    [fields.top_k, "9007199254740990.6", null],
    [fields.stop_token_ids, ",", undefined],
    [fields.stop_token_ids, "1, 2 3", [1, 2, 3]],
    [fields.stop_token_ids, "1, x", null],
    [fields.stop, " ", [" "]],
    [fields.stop, "\n\n", undefined],
    [fields.stop_token_ids, " ", undefined],
    [fields.stop, "END\n\n\\n\\n\n\\d", ["END", "\n\n", "\\d"]],
  ])("%o as %j is %j", (described, text, value) => {
    expect(parseValue(described, text)).toEqual(value);
  });

  test.each<[WireSamplingField, WireSamplingValue]>([
    [fields.stop, ["\n\n", "a\\nb", "a\tb", "\\"]],
    [fields.stop_token_ids, [0, 151643]],
    [fields.temperature, 0.25],
  ])("%o keeps %j", (described, value) => {
    expect(parseValue(described, formatValue(value))).toEqual(value);
  });

  test("is told with the blanks that nobody would see", () => {
    expect(valueWords([" ", "a b  "])).toBe("␣\na b␣␣");
    expect(valueWords(0.25)).toBe("0.25");
  });
});

describe("what is sent", () => {
  const described = Object.values(fields);

  test("is nothing that was not changed, but for the page's own limit", () => {
    expect(fieldsToSend(described, {})).toEqual({ max_output_tokens: 1024 });
    expect(fieldsToSend([], {})).toEqual({ max_output_tokens: 1024 });
  });

  test("is what was changed", () => {
    const changed = { temperature: 0, max_output_tokens: 5, ignore_eos: false };
    expect(fieldsToSend(described, changed)).toEqual(changed);
  });

  test("is nothing that the model does not have, or not so", () => {
    const changed = { temperature: 9, top_p: true, mirostat: 2 };
    expect(fieldsToSend(described, changed)).toEqual({ max_output_tokens: 1024 });
  });
});

test("a number reads as the reader writes it, and is understood with either mark", async () => {
  const large = field("max_output_tokens", "integer", {});
  await speak("de");
  expect(formatValue(0.25)).toBe("0,25");
  expect(defaultWords(fields.temperature)).toBe("0,2");
  expect(problemOf({ ...fields.temperature, maximum: 1.5 }, 2)).toContain("1,5");
  expect(parseValue(large, formatValue(16_384))).toBe(16_384);
  await speak("en");
  expect(formatValue(0.25)).toBe("0.25");
});

test("a slider has the ends and a step that fit the range, and none where it would be of no use", () => {
  expect(sliderOf(fields.temperature)).toEqual({ min: 0, max: 2, step: 0.01 });
  expect(sliderOf(fields.top_p)).toEqual({ min: 0.01, max: 1, step: 0.01 });
  expect(sliderOf(field("beams", "integer", { minimum: 1, maximum: 8 }))).toEqual({ min: 1, max: 8, step: 1 });
  expect(sliderOf(fields.seed)).toBeNull();
  expect(sliderOf(fields.top_k)).toBeNull();
  expect(sliderOf(fields.stop_token_ids)).toBeNull();
});

test("a field that nobody has described in words has its own name", () => {
  expect(labelOf("temperature")).toBe("Temperature");
  expect(labelOf("mirostat_tau")).toBe("mirostat_tau");
  expect(meaningOf("mirostat_tau")).toBeNull();
});

test("a default is told in words", () => {
  expect(defaultWords(fields.temperature)).toBe("0.2");
  expect(defaultWords(fields.ignore_eos)).toBe("off");
  expect(defaultWords(fields.stop)).toBe("none");
  expect(defaultWords(fields.seed)).toBe("drawn anew for each answer");
  expect(defaultOf(fields.max_output_tokens)).toBe(1024);
});
