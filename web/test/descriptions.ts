/** Sampling fields and personas as a server describes them. */

import type { WirePrompt, WireSamplingField } from "../src/wire/protocol";

export function field(
  name: string,
  type: WireSamplingField["type"],
  rest: Partial<WireSamplingField> = {},
): WireSamplingField {
  return { name, type, default: null, ...rest };
}

export const fields = {
  temperature: field("temperature", "number", { default: 0.2, minimum: 0, maximum: 2 }),
  top_p: field("top_p", "number", { default: 0.9, minimum: 0, maximum: 1, exclusive_minimum: true }),
  top_k: field("top_k", "integer", { default: 0, minimum: -1 }),
  seed: field("seed", "integer", { minimum: -(2 ** 63), maximum: 2 ** 63, exclusive_maximum: true }),
  max_output_tokens: field("max_output_tokens", "integer", { minimum: 1 }),
  stop: field("stop", "strings", { default: [], max_items: 2, max_item_chars: 5 }),
  stop_token_ids: field("stop_token_ids", "integers", { default: [], minimum: 0, max_items: 3 }),
  ignore_eos: field("ignore_eos", "boolean", { default: false }),
} as const;

export function persona(name: string, rest: Partial<WirePrompt> = {}): WirePrompt {
  return { name, version: 1, excerpt: `You are ${name}.`, variables: [], workers: [], ...rest };
}
