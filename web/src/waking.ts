/**
 * When the page comes back to life: it is shown again, the network is back, the machine has slept.
 *
 * A sleep leaves no event behind where the page stayed in view; the clock tells, which went on while
 * timers stood still. A hidden tab whose timers are slowed down looks the same, and is none the
 * worse for being asked.
 */

const tickMs = 5_000;
const jumpMs = 15_000;

/** Have `onWake` called each time. */
export function watchWaking(onWake: () => void): void {
  window.addEventListener("online", onWake);
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) onWake();
  });
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) onWake();
  });
  let lastTickMs = Date.now();
  setInterval(() => {
    const sinceMs = Date.now() - lastTickMs;
    lastTickMs += sinceMs;
    if (sinceMs > jumpMs) onWake();
  }, tickMs);
}
