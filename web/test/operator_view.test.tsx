import { renderToString } from "preact-render-to-string";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

import { App } from "../src/app";
import { Poll } from "../src/observe/poll";
import { fullnessOf, quotaName, shareOf } from "../src/operator/limits";
import { healthOf, hitRate } from "../src/operator/worker_health";
import { Settings } from "../src/settings";
import { OperatorView, OverviewPanes } from "../src/view/operator/operator_view";
import { Sidebar } from "../src/view/list/sidebar";
import type { WireOverview, WireTenantOverview, WireWorkerOverview } from "../src/wire/overview";
import { FakeSocket, fakeBrowser, fakeWindow } from "./fakes";

const worker: WireWorkerOverview = {
  id: "engine-1",
  model: "tiny",
  version: "0.1.0",
  is_draining: false,
  beat_age_ms: 400,
  requests_running: 3,
  requests_waiting: 1,
  num_pages: 100,
  pages_free: 15,
  pages_used: 25,
  pages_cached: 60,
  pages_shared: 4,
  pages_pinned: 2,
  query_tokens: 1_000,
  hit_tokens: 710,
};
const tenant: WireTenantOverview = {
  name: "acme & co",
  requests_running: 2,
  requests_queued: 0,
  connections: null,
  usage_today: { requests: 12, input_tokens: 9_000, cached_tokens: 6_000, output_tokens: 800 },
  limits: {
    requests_per_minute: { used: 60, limit: 60 },
    pinned_pages: { used: null, limit: 256 },
  },
};
const quiet: WireOverview = {
  gateway: { version: "0.1.0", connections: 3, is_draining: false },
  workers: [],
  queues: [],
  tenants: [],
  has_more: false,
};

function render(seen: Partial<WireOverview>, isFirst = true): string {
  const overview = { ...quiet, ...seen };
  const poll = new Poll<WireOverview>(async () => overview, 1);
  poll.reading.value = { value: overview, atMs: 0 };
  const paging = { isFirst, onNext: () => undefined, onPrevious: () => undefined };
  return renderToString(<OverviewPanes poll={poll} paging={paging} />);
}

describe("the operator's page", () => {
  test("shows what a tenant does, used and may use, with a way to its part of the cache", () => {
    const html = render({ tenants: [tenant] });

    expect(html).toContain("12 requests: 9,000 input tokens, 800 output tokens");
    expect(html).toContain("67% of the input came from the cache");
    expect(html).toContain("60 of 60");
    expect(html).toContain("limit reached");
    expect(html).toContain('href="#/cache?tenant=acme+%26+co"');
  });

  test("claims nothing of what is not counted", () => {
    const html = render({ tenants: [tenant] });

    expect(html).toContain("up to 256");
    expect(html).not.toContain("Connections");
    expect(html.match(/class="usage-bar"/g)).toHaveLength(1);
  });

  test("says nothing of where the input of nobody came from", () => {
    const usage_today = { requests: 1, input_tokens: 0, cached_tokens: 0, output_tokens: 0 };

    const html = render({ tenants: [{ ...tenant, usage_today }] });

    expect(html).toContain("1 request: 0 input tokens");
    expect(html).not.toContain("came from the cache");
  });

  test("names the commands that change what it shows, to be copied", () => {
    const html = render({ tenants: [tenant] });

    for (const command of ["tenant add", "key add", "tenant set", "prompt add"]) {
      expect(html.replace(/<\/?span>/g, "")).toMatch(new RegExp(`<code>chatserve ${command} [^<]+`));
      expect(html).toMatch(new RegExp(`aria-label="Copy chatserve ${command} [^"]*"`));
    }
  });

  test("names each figure of a tenant where there is no room for a head of the table", () => {
    const html = render({ tenants: [tenant] });

    expect([...html.matchAll(/data-column="([^"]+)"/g)].map(([, name]) => name)).toEqual([
      "Running",
      "Waiting",
      "Used today",
      "Limits",
    ]);
  });

  test("shows a worker's pages, hit rate and beat, and the queue of its model", () => {
    const queues = [{ model: "tiny", length: 7, max_length: 1_000 }];

    const html = render({ workers: [worker], queues });

    expect(html).toContain("25 of 100");
    expect(html).toContain("71%");
    expect(html).toContain("0.4 sec ago");
    expect(html).toContain("Queue of tiny");
    expect(html).toContain("7 of 1,000");
  });

  test("has a way to further tenants only where there are some", () => {
    const tenants = [tenant];

    expect(render({ tenants })).not.toContain("Next tenants");
    expect(render({ tenants, has_more: true })).toMatch(/<button[^>]*disabled[^>]*>Previous/);
    expect(render({ tenants }, false)).toMatch(/<button[^>]*disabled[^>]*>Next/);
  });

  test("says what is not there", () => {
    const html = render({});

    expect(html).toContain("version 0.1.0 and has 3 open connections");
    expect(html).toContain("No worker answers.");
    expect(html).toContain("There are no tenants yet.");
  });
});

test.each([
  [{}, "live"],
  [{ is_draining: true }, "draining"],
  [{ is_draining: true, beat_age_ms: 60_000 }, "silent"],
  [{ beat_age_ms: null }, "silent"],
])("a worker with %j is %s", (change, health) => {
  expect(healthOf({ ...worker, ...change })).toBe(health);
});

test("before the first prompt there is no hit rate", () => {
  expect(hitRate(worker)).toBe(0.71);
  expect(hitRate({ ...worker, query_tokens: 0, hit_tokens: 0 })).toBeNull();
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
