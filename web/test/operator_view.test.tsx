import { renderToString } from "preact-render-to-string";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { Poll } from "../src/observe/poll";
import { fullnessOf, quotaName, shareOf } from "../src/operator/limits";
import { healthOf } from "../src/operator/worker_health";
import { Settings } from "../src/settings";
import { OperatorView, OverviewPanes } from "../src/view/operator/operator_view";
import { Sidebar } from "../src/view/sidebar";
import type { WireOverview, WireTenantOverview, WireWorkerOverview } from "../src/wire/overview";
import { FakeSocket, fakeBrowser, fakeWindow } from "./fakes";

const worker: WireWorkerOverview = {
  id: "engine-1",
  model: "tiny",
  is_draining: false,
  num_pages: 100,
  num_free_pages: 75,
  hit_rate: 0.71,
  num_running: 3,
  num_waiting: 1,
  beat_age_s: 0.4,
};
const tenant: WireTenantOverview = {
  id: "acme & co",
  num_running: 2,
  num_waiting: 0,
  num_connections: 4,
  usage_today: { requests: 12, input_tokens: 9_000, cached_tokens: 6_000, output_tokens: 800 },
  limits: [{ name: "requests_per_minute", used: 60, limit: 60 }],
};

function render(overview: WireOverview): string {
  const poll = new Poll<WireOverview>(async () => overview, 1);
  poll.reading.value = { value: overview, atMs: 0 };
  return renderToString(<OverviewPanes poll={poll} />);
}

describe("the operator's page", () => {
  test("shows what a tenant does, used and may use, with a way to its part of the cache", () => {
    const html = render({ tenants: [tenant], workers: [] });

    expect(html).toContain("12 requests, 9,000 tokens in, 800 out");
    expect(html).toContain("60 of 60");
    expect(html).toContain("limit reached");
    expect(html).toContain('href="#/cache?tenant=acme+%26+co"');
  });

  test("shows a worker's pages, hit rate and beat", () => {
    const html = render({ tenants: [], workers: [worker] });

    expect(html).toContain("25 of 100");
    expect(html).toContain("71%");
    expect(html).toContain("0.4 sec ago");
  });

  test("says what is not there", () => {
    const html = render({ tenants: [], workers: [] });

    expect(html).toContain("No worker answers.");
    expect(html).toContain("There are no tenants yet.");
  });
});

test.each([
  [{}, "live"],
  [{ is_draining: true }, "draining"],
  [{ is_draining: true, beat_age_s: 60 }, "silent"],
])("a worker with %j is %s", (change, health) => {
  expect(healthOf({ ...worker, ...change })).toBe(health);
});

test.each([
  [0, 10, "free"],
  [8, 10, "near"],
  [12, 10, "full"],
  [0, 0, "full"],
])("%i of %i is %s", (used, limit, fullness) => {
  expect(fullnessOf(shareOf(used, limit))).toBe(fullness);
});

test("a quota that the page does not know keeps its name", () => {
  expect(quotaName("connections")).toBe("Connections");
  expect(quotaName("wishes_per_day")).toBe("wishes_per_day");
});

describe("of the service's operation", () => {
  let app: App;

  beforeEach(() => {
    fakeBrowser();
    fakeWindow();
    app = new App(() => new FakeSocket() as unknown as WebSocket, new Settings());
  });

  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  function identify(role: string, key_id: string | null): void {
    app.login.identity.value = { tenant: "acme", user: "kim", role, key_id };
  }

  test.each([
    ["an operator", "operator", "key_1", true],
    ["whoever is there while nobody needs a key", "member", null, true],
    ["a member", "member", "key_1", false],
  ])("%s is shown the way to it: %s, %s, %s", (_who, role, keyId, isShown) => {
    identify(role, keyId);

    const html = renderToString(<Sidebar app={app} onChoose={() => undefined} />);

    expect(html.includes('href="#/operator"')).toBe(isShown);
    expect(html).toContain('href="#/cache"');
  });

  test("a member is told whose page it is", () => {
    identify("member", "key_1");

    expect(renderToString(<OperatorView app={app} />)).toContain("for the operator");
  });
});
