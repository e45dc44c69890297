/** What the file of an export is called: after what is in it, and the day. */

/** Return a name for the export of one session, or of all. */
export function exportName(title: string | null, now: Date): string {
  const name = (title ?? "").replace(/[\s\\/:*?"<>|\u0000-\u001f]+/g, " ").trim();
  return `${name || "chatserve"} ${dayOf(now)}.json`;
}

/** Return the reader's day so that files stand in the order of time. */
function dayOf(now: Date): string {
  const parts = [now.getFullYear(), now.getMonth() + 1, now.getDate()];
  return parts.map((part) => String(part).padStart(2, "0")).join("-");
}
