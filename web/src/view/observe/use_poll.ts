/** A poll that runs as long as the view that shows it. */

import { useEffect } from "preact/hooks";

import type { Poll } from "../../observe/poll";

export function usePoll(poll: Poll<unknown>): void {
  useEffect(() => {
    poll.start();
    return () => poll.stop();
  }, [poll]);
}
