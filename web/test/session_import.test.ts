import { afterEach, expect, test, vi } from "vitest";

import { exportName } from "../src/sessions/export_name";
import { SessionImport } from "../src/sessions/session_import";

afterEach(() => vi.unstubAllGlobals());

const fileOf = (document: unknown) => new Blob([JSON.stringify(document)]);
const exported = { object: "chatserve.conversations", format: 1, conversations: [] };

async function outcomeOf(stored: string[], existing: string[]): Promise<string | null> {
  const reply = { conversation_ids: stored, existing_conversation_ids: existing };
  vi.stubGlobal("document", { baseURI: "http://chat.test/" });
  vi.stubGlobal("fetch", async () => Response.json(reply));
  const importing = new SessionImport(() => undefined);
  await importing.take(fileOf(exported));
  return importing.outcome.value;
}

test("an import says what it stored and what was there already", async () => {
  expect(await outcomeOf(["a", "b"], [])).toBe("2 conversations imported.");
  expect(await outcomeOf(["a"], ["b", "c"])).toBe("1 conversation imported. 2 were there already.");
  expect(await outcomeOf([], ["b"])).toBe("1 was there already.");
  expect(await outcomeOf([], [])).toBe("0 conversations imported.");
});

test.each([
  ["a list", fileOf([])],
  ["nothing", fileOf(null)],
  ["something else", fileOf({ object: "list", data: [] })],
  ["no JSON", new Blob(["# Hello"])],
])("a file that has %s in it is no export, and is not sent", async (_, file) => {
  const fetched = vi.fn();
  vi.stubGlobal("fetch", fetched);
  const importing = new SessionImport(() => undefined);

  await importing.take(file);

  expect(importing.outcome.value).toBe(
    "Nothing was imported. The file is no export of chatserve.",
  );
  expect(fetched).not.toHaveBeenCalled();
});

test("a file that the service would not take is not even read", async () => {
  const file = fileOf(exported);
  Object.defineProperty(file, "size", { value: 16 * 2 ** 20 + 1 });
  const read = vi.spyOn(file, "text");
  const importing = new SessionImport(() => undefined);

  await importing.take(file);

  expect(importing.outcome.value).toBe(
    "Nothing was imported. The file has 16.8 MB, and at most 16.8 MB can be imported at once.",
  );
  expect(read).not.toHaveBeenCalled();
});

test("an export is named after what is in it and the reader's day", () => {
  const now = new Date(2026, 2, 7, 23, 59);

  expect(exportName("A/B: what?", now)).toBe("A B what 2026-03-07.json");
  expect(exportName("  ", now)).toBe("chatserve 2026-03-07.json");
  expect(exportName(null, now)).toBe("chatserve 2026-03-07.json");
});
