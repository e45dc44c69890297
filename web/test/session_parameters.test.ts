import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { choicesIn, noChoices, withChoices, type Choices, type Metadata } from "../src/parameters/choices";
import { takeOverLeftChoices } from "../src/parameters/left_choices";
import { SessionParameters } from "../src/parameters/session_parameters";
import type { WireConversation } from "../src/wire/protocol";
import { fakeBrowser } from "./fakes";

/** One conversation with versions, as the server keeps it. */
class Server {
  metadata: Metadata = {};
  version = 1;
  numNotes = 0;
  problem: { status: number; code: string; message: string } | null = null;

  conversation(): WireConversation {
    const { metadata, version } = this;
    const times = { created_at: 0, updated_at: 0, active_response_ids: [] };
    return { id: "conv_1", title: "", ...times, metadata: { ...metadata }, "chatserve:version": version };
  }

  /** Somebody else's choices arrive. */
  choose(choices: Partial<Choices>): void {
    this.metadata = withChoices(this.metadata, { ...noChoices, ...choices })!;
    this.version += 1;
  }

  noted(): Choices {
    return choicesIn(this.metadata);
  }

  answer(method: string, body: string): Response {
    if (this.problem !== null) return Response.json({ error: this.problem }, { status: this.problem.status });
    if (method === "GET") return Response.json(this.conversation());
    const change = JSON.parse(body) as { metadata: Metadata; "chatserve:version": number };
    if (change["chatserve:version"] !== this.version) {
      return Response.json({ error: { code: "version_conflict", message: "late" } }, { status: 409 });
    }
    this.numNotes += 1;
    this.metadata = change.metadata;
    this.version += 1;
    return Response.json(this.conversation());
  }
}

let server: Server;
let parameters: SessionParameters;

beforeEach(() => {
  fakeBrowser();
  server = new Server();
  parameters = new SessionParameters();
  vi.stubGlobal("fetch", async (_url: URL, { method, body }: { method: string; body: string }) =>
    server.answer(method, body),
  );
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

async function rest(): Promise<void> {
  await vi.advanceTimersByTimeAsync(1_000);
}

test("a slider in motion is noted once, where it rests", async () => {
  parameters.take(server.conversation());

  for (const temperature of [0.1, 0.2, 0.3]) parameters.setField("temperature", temperature);
  await rest();

  expect(server.numNotes).toBe(1);
  expect(server.noted().fields).toEqual({ temperature: 0.3 });
});

test("another page finds what was noted", async () => {
  parameters.take(server.conversation());
  parameters.chooseModel("tiny");
  parameters.choosePersona("letter");
  parameters.setVariable("name", "Ada");
  await rest();

  const elsewhere = new SessionParameters();
  elsewhere.take(server.conversation());

  expect(elsewhere.choices.value).toEqual(parameters.choices.value);
});

test("nothing is sent for what is as it was", async () => {
  parameters.take(server.conversation());
  parameters.setField("temperature", 1);
  parameters.resetField("temperature");
  await rest();

  expect(server.numNotes).toBe(0);
});

test("a note that came too late is made again upon the newer one", async () => {
  parameters.take(server.conversation());
  server.choose({ fields: { seed: 7 } });
  server.metadata = { ...server.metadata, theirs: "1" };

  parameters.setField("temperature", 0);
  await rest();

  expect(server.noted().fields).toEqual({ seed: 7, temperature: 0 });
  expect(server.metadata["theirs"]).toBe("1");
  expect(parameters.choices.value.fields).toEqual({ seed: 7, temperature: 0 });
  expect(parameters.problem.value).toBeNull();
});

test("what is changed back while it is being noted is noted as it is in the end", async () => {
  parameters.take(server.conversation());
  parameters.setField("temperature", 1);
  const noting = parameters.note();
  parameters.resetField("temperature");
  await noting;
  await rest();

  expect(parameters.choices.value).toEqual(noChoices);
  expect(server.noted()).toEqual(noChoices);
});

test("what has not rested when the page is left is there for the page that follows, once", async () => {
  const storage = new Map<string, string>();
  vi.stubGlobal("sessionStorage", {
    getItem: (name: string) => storage.get(name) ?? null,
    setItem: (name: string, text: string) => storage.set(name, text),
    removeItem: (name: string) => storage.delete(name),
  });
  parameters.take(server.conversation());
  server.choose({ fields: { seed: 7 } });
  parameters.setField("temperature", 0);
  parameters.leave();
  const numLeft = storage.size;

  takeOverLeftChoices();
  const other = new SessionParameters();
  other.take({ ...server.conversation(), id: "conv_2" });
  const next = new SessionParameters();
  next.take(server.conversation());
  const later = new SessionParameters();
  later.take(server.conversation());

  expect(other.choices.value.fields).toEqual({ seed: 7 });
  expect(next.choices.value.fields).toEqual({ seed: 7, temperature: 0 });
  expect(later.choices.value.fields).toEqual({ seed: 7 });
  expect([numLeft, storage.size]).toEqual([1, 0]);
});

test("a reading from before the last note changes nothing", async () => {
  const before = server.conversation();
  parameters.take(before);
  parameters.setField("temperature", 0);
  await rest();

  parameters.take(before);

  expect(parameters.choices.value.fields).toEqual({ temperature: 0 });
});

test("choices that cannot be noted hold, and the reader is told", async () => {
  parameters.take(server.conversation());
  server.problem = { status: 503, code: "store_unavailable", message: "The store is away." };
  parameters.setField("temperature", 0);
  await rest();

  expect(parameters.choices.value.fields).toEqual({ temperature: 0 });
  expect(parameters.problem.value).toContain("The store is away.");

  server.problem = null;
  parameters.setField("temperature", 1);
  await rest();

  expect(parameters.problem.value).toBeNull();
  expect(server.noted().fields).toEqual({ temperature: 1 });
});

test("choices that are too long to be noted hold, and the reader is told", async () => {
  parameters.take(server.conversation());
  parameters.setField("stop", ["x".repeat(9_000)]);
  await rest();

  expect(server.numNotes).toBe(0);
  expect(parameters.problem.value).toContain("too long");
});

test("a new chat begins as another one, has its choices noted as it is stored, and may become new again", async () => {
  const previous = new SessionParameters();
  previous.setField("temperature", 0);

  parameters.beginWith(previous.choices.value);
  server.metadata = parameters.toMetadata();
  parameters.onStored(server.conversation());
  await rest();

  expect(server.noted().fields).toEqual({ temperature: 0 });
  expect(server.numNotes).toBe(0);

  parameters.onWithdrawn();
  parameters.setField("temperature", 1);
  await rest();

  expect(server.numNotes).toBe(0);
  expect(previous.choices.value.fields).toEqual({ temperature: 0 });
});

test("an emptied variable is left to its default, and another persona begins with none", () => {
  parameters.choosePersona("letter");
  parameters.setVariable("name", "Ada");
  parameters.setVariable("name", "");
  expect(parameters.choices.value.persona).toEqual({ name: "letter", variables: {} });

  parameters.setVariable("name", "Ada");
  parameters.choosePersona("letter");
  expect(parameters.choices.value.persona?.variables).toEqual({ name: "Ada" });
  parameters.choosePersona("support");
  expect(parameters.choices.value.persona).toEqual({ name: "support", variables: {} });
});
