/**
 * Once per animation frame, whatever the number of calls.
 *
 * A hidden tab gets no animation frames; there a slow timer takes over so that an answer is
 * folded, and its end noticed, while nobody looks.
 */

const hiddenDelayMs = 250;

/** Return a function that runs `task` soon, once for all calls until then. */
export function oncePerFrame(task: () => void): () => void {
  let isScheduled = false;
  const run = () => {
    if (!isScheduled) return;
    isScheduled = false;
    task();
  };
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    if (!document.hidden) requestAnimationFrame(run);
    // Also the way out for a frame that was asked for just before the tab was hidden.
    setTimeout(run, hiddenDelayMs);
  };
}
