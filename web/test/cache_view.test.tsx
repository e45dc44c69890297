import { renderToString } from "preact-render-to-string";
import { beforeEach, describe, expect, test } from "vitest";

import { CacheWatch } from "../src/cache/cache_watch";
import { layoutTree } from "../src/cache/tree_layout";
import { CachePanes } from "../src/view/cache/cache_view";
import { NodeTable } from "../src/view/cache/tree_table";
import { ApiError } from "../src/wire/api";
import type { WireCache } from "../src/wire/cache_snapshot";
import { cacheNode, cacheOf, cacheWorker, runningRequest, treeOf, twoTenants } from "./cache_snapshots";

let watch: CacheWatch;

beforeEach(() => {
  watch = new CacheWatch(null, null);
});

function see(cache: WireCache): void {
  watch.poll.reading.value = { value: cache, atMs: 0 };
}

function render(tenant: string | null = null): string {
  return renderToString(<CachePanes watch={watch} tenant={tenant} />);
}

describe("a member of a tenant", () => {
  beforeEach(() => see(cacheOf(cacheWorker())));

  test("reads the first words of what is theirs or everybody's", () => {
    const html = render();

    expect(html).toContain("You are the helpdesk");
    expect(html).toContain("Be kind.");
  });

  test("sees of another tenant that there is something, and how much", () => {
    const html = render();

    expect(html.match(/data-node="[0-9]+"[^>]*data-scope="other"/g)).toHaveLength(2);
    expect(html).toContain("320 tokens");
  });

  test("can go to every node by keys, each with a name, and Tab stops at one", () => {
    const html = render();

    expect(html.match(/role="treeitem"[^>]*aria-label="[^"]+"/g)).toHaveLength(5);
    expect(html.match(/role="treeitem"[^>]*tabindex="0"/g)).toHaveLength(1);
  });

  test("sees which prefix is pinned", () => {
    expect(render().match(/class="ring"/g)).toHaveLength(1);
  });

  test("is told the counts of pages, also without eyes", () => {
    expect(render()).toContain("Pages of the pool. Free: 2, Used by one: 2");
  });

  test("is told of the last minute in a sentence", () => {
    expect(render()).toContain(
      "In the last 60 seconds: 40 tokens read, 8 written, 32 taken from the cache at no cost. " +
        "At most 3 requests waited.",
    );
  });
});

test("a chosen request shows its pages in order, with where they came from", () => {
  see(cacheOf(cacheWorker()));
  const before = render();
  watch.toggleRequest("resp_1");

  const html = render();

  expect(before).not.toContain("logical-page");
  expect(html).toContain('aria-pressed="true"');
  expect(html).toContain("The physical pages of the chosen request, in order: 4, 0, 7");
  expect([...html.matchAll(/data-origin="(\w+)"/g)].map(([, origin]) => origin)).toEqual([
    "copied",
    "cached",
    "computed",
  ]);
});

test("a request of another user is there without a name, and not to be followed", () => {
  see(cacheOf(cacheWorker({ requests: [runningRequest({ id: null })] })));

  const html = render();

  expect(watch.request.value).toBeNull();
  expect(html).toMatch(/<button[^>]*disabled[^>]*>.*another user/s);
});

test("the first words of a node say whose they are, as far as that is told", () => {
  const text = "Be kind. What is 2+2?";
  const roles = [
    { role: "system", at: 0 },
    { role: "user", at: 9 },
  ] as const;
  const nodes = [
    cacheNode(1, null, { text, roles: [...roles] }),
    cacheNode(2, null, { text: "user 4, of course" }),
  ];
  see(cacheOf(cacheWorker({ nodes })));

  const html = render();

  expect(html).toContain('aria-label="System: Be kind. You: What is 2+2?, 64 tokens');
  expect(html.match(/class="role"[^>]*>(System|You)</g)).toHaveLength(2);
  expect(html).toContain('aria-label="user 4, of course, 64 tokens');
});

test("equal beginnings that are not shared are counted, and the legend says why", () => {
  const nodes = [
    cacheNode(1, null, { alike: { node_id: 3, num_tokens: 12 } }),
    cacheNode(2, null),
    cacheNode(3, null, { alike: { node_id: 1, num_tokens: 12 } }),
  ];
  see(cacheOf(cacheWorker()));
  const without = render();
  see(cacheOf(cacheWorker({ nodes })));

  const html = render();

  expect(html.match(/64 tokens · 12 in common/g)).toHaveLength(2);
  expect(html).toContain("those 12 tokens fill no page");
  expect(html).toContain("Pages of 16 tokens are shared whole");
  expect(without).not.toContain("Pages of 16 tokens are shared whole");
  expect(layoutTree(nodes).nodes.map(({ node }) => node.id)).toEqual([1, 3, 2]);
});

test("the legend explains the scopes that are there", () => {
  see(cacheOf(cacheWorker({ nodes: twoTenants().filter(({ scope }) => scope !== "other") })));

  expect(render()).toContain("Everybody's");
  expect(render()).not.toContain("Other tenants'");
});

describe("an operator", () => {
  const nodes = twoTenants().map((node) => ({ ...node, tenant: node.id === 3 ? "globex" : null }));

  test("sees tenants by name", () => {
    see({ view: "all", workers: [cacheWorker({ nodes })] });

    expect(render()).toContain("globex");
    expect(render()).toContain("You see all tenants.");
  });

  test("who looks at one tenant is told so, and can go back to all", () => {
    see({ view: "all", workers: [cacheWorker({ nodes })] });

    expect(render("acme")).toContain("You see acme only.");
    expect(render("acme")).toContain('href="#/cache"');
  });
});

test("several workers can be chosen from, one cannot", () => {
  see(cacheOf(cacheWorker()));
  const one = render();
  see(cacheOf(cacheWorker(), cacheWorker({ id: "engine-2" })));

  expect(one).not.toContain("<select");
  expect(render()).toContain("tiny · engine-2");
});

describe("instead of a picture it is said", () => {
  test("that nothing is cached yet", () => {
    see(cacheOf(cacheWorker({ nodes: [], requests: [], steps: [] })));

    const html = render();

    expect(html).toContain("Nothing is cached yet.");
    expect(html).toContain("No request is running right now.");
    expect(html).toContain("Nothing was computed in the last 60 seconds.");
  });

  test("that no worker answers", () => {
    see(cacheOf());

    expect(render()).toContain("No worker answers.");
  });

  test("that it is loading", () => {
    expect(render()).toContain("Loading");
  });

  test.each([
    [403, "Your key may not see this", false],
    [404, "This server does not offer this view", true],
    [503, "The service cannot tell right now", true],
  ])("why it cannot be had after %i", (status, words, canRetry) => {
    watch.poll.problem.value = new ApiError(status, "c", "No.");

    expect(render()).toContain(words);
    expect(render().includes("Retry")).toBe(canRetry);
  });
});

test("a picture from before stays, and is said to be from before", () => {
  see(cacheOf(cacheWorker()));
  watch.poll.problem.value = new ApiError(0, "unreachable", "The server cannot be reached.");

  expect(render()).toContain("What you see is from before.");
  expect(render()).toContain("You are the helpdesk");
});

test("nodes that are not drawn are counted", () => {
  see(cacheOf(cacheWorker({ num_hidden_nodes: 412 })));

  expect(render()).toContain("412 more are not drawn.");
});

describe("the table", () => {
  test("has a row for each node and says what it is sorted by", () => {
    const html = renderToString(<NodeTable nodes={twoTenants()} />);

    expect(html.match(/<th scope="row"/g)).toHaveLength(5);
    expect(html).toMatch(/aria-sort="descending"[^>]*><button[^>]*>Tokens/);
  });

  test("of a large tree begins with some rows and offers more", () => {
    const html = renderToString(<NodeTable nodes={treeOf(2_000, 5)} />);

    expect(html.match(/<th scope="row"/g)).toHaveLength(100);
    expect(html).toContain("Show 100 more");
  });
});
