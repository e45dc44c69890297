/** A moment in which the page has nothing else to do. */

/** However busy the page is, what waits for such a moment goes on after this. */
const longestWaitMs = 200;

/** Return a promise of the next such moment. */
export function nextIdleTime(): Promise<void> {
  return new Promise((resolve) => {
    // Safari has no idle callbacks; a timer lets at least the pending input pass.
    if ("requestIdleCallback" in globalThis) {
      requestIdleCallback(() => resolve(), { timeout: longestWaitMs });
    } else setTimeout(resolve, 50);
  });
}
