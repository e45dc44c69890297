/**
 * Removals that became final when the page was left, for the page that comes next.
 *
 * A browser may drop a request that a page makes while it goes, and there may have been no network.
 * What is kept here is removed by the next page of the same user, so that what the reader deleted
 * stays deleted. Kept in the browser's storage and taken out of it once.
 */

import { readJson } from "../kept";
import type { Owner } from "../login";
import { isListOf, isMadeOf, isText, isTextOrNull } from "../shape";
import { ApiError } from "../wire/api";

const storageName = "chatserve:left-removals";

/** A session, or a message of it with what follows. */
export interface LeftRemoval {
  readonly sessionId: string;
  readonly itemId: string | null;
}

interface Left {
  readonly owner: Owner;
  readonly removals: readonly LeftRemoval[];
}

const isRemoval = isMadeOf<LeftRemoval>({ sessionId: isText, itemId: isTextOrNull });
const isLeft = isMadeOf<Left>({ owner: isTextOrNull, removals: isListOf(isRemoval) });

export function leaveRemoval(owner: Owner, removal: LeftRemoval): void {
  const removals = [...removalsOf(owner), removal];
  try {
    localStorage.setItem(storageName, JSON.stringify({ owner, removals }));
  } catch {
    // A browser that keeps nothing leaves it to the request that is under way.
  }
}

/** Return the sessions that are still to be removed; their ids are of use to no other user. */
export function leftSessionIds(): string[] {
  return (readLeft()?.removals ?? []).flatMap(({ sessionId, itemId }) => (itemId === null ? sessionId : []));
}

/** Remove what was left for a user, as far as that is possible now; return whether it was any. */
export async function finishRemovals(
  owner: Owner,
  remove: (removal: LeftRemoval) => Promise<void>,
): Promise<boolean> {
  const removals = take(owner);
  for (const removal of removals) {
    await remove(removal).catch((error: unknown) => {
      const isGone = error instanceof ApiError && error.status === 404;
      if (!isGone) leaveRemoval(owner, removal);
    });
  }
  return removals.length > 0;
}

/** Return what was left for a user, once; what somebody else left is dropped. */
function take(owner: Owner): readonly LeftRemoval[] {
  const removals = removalsOf(owner);
  try {
    localStorage.removeItem(storageName);
  } catch {
    // It refused to keep anything, too.
  }
  return removals;
}

function removalsOf(owner: Owner): readonly LeftRemoval[] {
  const left = readLeft();
  return left?.owner === owner ? left.removals : [];
}

function readLeft(): Left | null {
  const left = readJson(() => localStorage, storageName);
  return isLeft(left) ? left : null;
}
