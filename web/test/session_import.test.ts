import { afterEach, expect, test, vi } from "vitest";

import { exportName } from "../src/sessions/export_name";
import { SessionImport } from "../src/sessions/session_import";

afterEach(() => vi.unstubAllGlobals());

async function outcomeOf(stored: string[], existing: string[]): Promise<string | null> {
  const reply = { conversation_ids: stored, existing_conversation_ids: existing };
  vi.stubGlobal("document", { baseURI: "http://chat.test/" });
  vi.stubGlobal("fetch", async () => Response.json(reply));
  const importing = new SessionImport(() => undefined);
  await importing.take(new Blob(["{}"]));
  return importing.outcome.value;
}

test("an import says what it stored and what was there already", async () => {
  expect(await outcomeOf(["a", "b"], [])).toBe("2 conversations imported.");
  expect(await outcomeOf(["a"], ["b", "c"])).toBe("1 conversation imported. 2 were there already.");
  expect(await outcomeOf([], ["b"])).toBe("1 was there already.");
  expect(await outcomeOf([], [])).toBe("0 conversations imported.");
});

test("an export is named after what is in it and the reader's day", () => {
  const now = new Date(2026, 2, 7, 23, 59);

  expect(exportName("A/B: what?", now)).toBe("A B what 2026-03-07.json");
  expect(exportName("  ", now)).toBe("chatserve 2026-03-07.json");
  expect(exportName(null, now)).toBe("chatserve 2026-03-07.json");
});
