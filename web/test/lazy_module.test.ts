import { expect, test, vi } from "vitest";

import { LazyModule } from "../src/lazy_module";

test("a part is fetched once, however often it is asked for", async () => {
  const fetchModule = vi.fn<() => Promise<string>>(async () => "part");
  const part = new LazyModule(fetchModule);

  await Promise.all([part.request(), part.request()]);
  await part.request();

  expect(fetchModule).toHaveBeenCalledOnce();
  expect(part.current.value).toBe("part");
});

test("a fetch that failed is told, and the next request tries again", async () => {
  let isThere = false;
  const part = new LazyModule(async () => {
    if (!isThere) throw new TypeError("Failed to fetch");
    return "part";
  });
  await part.request();
  const afterFailure = [part.current.value, part.hasFailed.value];

  isThere = true;
  const second = part.request();
  const meanwhile = part.hasFailed.value;
  await second;

  expect(afterFailure).toEqual([null, true]);
  expect(meanwhile).toBe(false);
  expect(part.current.value).toBe("part");
});
