// @vitest-environment happy-dom
/** When the code of a growing answer is coloured. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";

import * as highlighter from "../src/markdown/highlighter";
import { Markdown } from "../src/markdown/markdown";
import { LivingDom } from "./living_dom";

let dom: LivingDom;

beforeEach(async () => {
  dom = new LivingDom();
  await highlighter.loadGrammar("python");
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

/** Draw a growing text, and let all happen that waits. */
async function grow(text: string): Promise<void> {
  dom.draw(<Markdown text={text} isGrowing={true} />);
  // The highlighter is imported anew each time, which takes more than one moment.
  for (let moment = 0; moment < 5; moment += 1) {
    await new Promise((resolve) => setTimeout(resolve));
    await dom.idle();
  }
}

test("an open fence is plain, and is coloured once when it has closed", async () => {
  const highlight = vi.spyOn(highlighter, "highlight");
  const open = "```python\nfor x in range(10):\n    print(x)\n";
  for (let length = 1; length <= open.length; length += 3) await grow(open.slice(0, length));
  await grow(open);
  const before = { calls: highlight.mock.calls.length, coloured: dom.shown.querySelector("pre span") };

  const closed = `${open}\`\`\`\n`;
  for (const behind of ["", "\n", "\nMore", "\nMore words.\n\nAnd more.\n\nAnd"]) {
    await grow(`${closed}${behind}`);
  }

  expect(before).toEqual({ calls: 0, coloured: null });
  expect(highlight).toHaveBeenCalledTimes(1);
  expect(dom.shown.querySelector(".code-keyword")?.textContent).toBe("for");
  expect(dom.shown.querySelector("pre")!.textContent).toBe("for x in range(10):\n    print(x)");
});
