/** A document in which a test draws a text, and says when the page is idle. */

import { render, type ComponentChild } from "preact";
import { act } from "preact/test-utils";
import { vi } from "vitest";

export class LivingDom {
  readonly root = document.createElement("div");
  #waiting: (() => void)[] = [];

  constructor() {
    vi.stubGlobal("requestIdleCallback", (run: () => void) => this.#waiting.push(run));
  }

  draw(what: ComponentChild): void {
    void act(() => render(what, this.root));
  }

  /** Let everything run that waits for an idle moment; return whether there was anything. */
  async idle(): Promise<boolean> {
    const waiting = this.#waiting;
    this.#waiting = [];
    await act(async () => {
      for (const run of waiting) run();
      await Promise.resolve();
    });
    return waiting.length > 0;
  }

  /** The element that a text is drawn as. */
  get shown(): Element {
    return this.root.firstElementChild!;
  }
}
