import { expect, test, vi } from "vitest";

import { LaterTransport } from "../src/wire/later_transport";
import { broken, type Transport, type TransportListener } from "../src/wire/transport";

const ping = { type: "chatserve:ping", t: 0 } as const;

function listening() {
  return { onFrame: vi.fn<TransportListener["onFrame"]>(), onEnd: vi.fn<TransportListener["onEnd"]>() };
}

function loaded() {
  return { send: vi.fn<Transport["send"]>(() => true), close: vi.fn<Transport["close"]>() };
}

const settle = () => new Promise((resolve) => setTimeout(resolve));

test("nobody receives what is sent before the transport is there", async () => {
  const inner = loaded();
  const transport = new LaterTransport(async () => inner, listening());
  const early = transport.send(ping);
  await settle();

  expect([early, transport.send(ping)]).toEqual([false, true]);
  expect(inner.send).toHaveBeenCalledOnce();
});

test("a transport that cannot be loaded has broken, so that it is tried again", async () => {
  const listener = listening();
  new LaterTransport(() => Promise.reject(new TypeError("Failed to fetch")), listener);
  await settle();

  expect(listener.onEnd).toHaveBeenCalledExactlyOnceWith(broken);
});

test("what is closed while it is loaded opens to nobody and says nothing", async () => {
  const inner = loaded();
  const [opened, failed] = [listening(), listening()];
  new LaterTransport(async () => inner, opened).close();
  new LaterTransport(() => Promise.reject(new TypeError("Failed to fetch")), failed).close();
  await settle();

  expect(inner.close).toHaveBeenCalledOnce();
  expect(failed.onEnd).not.toHaveBeenCalled();
});
