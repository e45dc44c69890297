/** Why a live view shows nothing, or nothing new, and a way to ask at once. */

import "./observe.css";

import type { Poll } from "../../observe/poll";
import { problemWords } from "../../observe/problem_words";
import { t } from "../../i18n/catalogue";

export function ProblemNotice({ poll }: { poll: Poll<unknown> }) {
  const problem = poll.problem.value;
  if (problem === null) return null;
  const isStale = poll.reading.value !== null;
  return (
    <div class="observe-problem" role="status">
      <p>
        {problemWords(problem)} {isStale && t("observe.stale")}
      </p>
      {problem.status !== 403 && (
        <button type="button" class="outlined" onClick={() => poll.retry()}>
          {t("common.retry")}
        </button>
      )}
    </div>
  );
}
