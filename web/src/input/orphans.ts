/**
 * Drafts of conversations that were deleted while no page of this browser had them on the screen.
 *
 * A row of the list is the only way to a draft, and these have none: they are looked for once the
 * drafts are there, and put where they are seen.
 */

import { codeOf, isMissing } from "../chat/load_state";
import { getSession } from "../wire/api";
import type { Unsent } from "./unsent";

export async function rescueOrphans(unsent: Unsent): Promise<void> {
  for (const sessionId of unsent.sessionIds()) {
    await getSession(sessionId).catch((error: unknown) => {
      if (isMissing(codeOf(error))) unsent.rescue(sessionId);
    });
  }
}
