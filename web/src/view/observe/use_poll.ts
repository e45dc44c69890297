/** A poll that runs as long as the view that shows it, and asks for a key where one is wanted. */

import { useEffect } from "preact/hooks";

import type { Login } from "../../login";
import type { Poll } from "../../observe/poll";

export function usePoll(poll: Poll<unknown>, login: Login): void {
  const problem = poll.problem.value;
  useEffect(() => {
    poll.start();
    return () => poll.stop();
  }, [poll]);
  useEffect(() => {
    if (problem !== null) login.noteRefusal(problem);
  }, [problem]);
}
