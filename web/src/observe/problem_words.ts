/** Why what the service is doing cannot be shown, in a sentence that says what to do. */

import { t } from "../i18n/catalogue";
import type { ApiError } from "../wire/api";

const statusesOfMissing = new Set([404, 405, 501]);

export function problemWords(problem: ApiError): string {
  if (problem.status === 403) return t("observe.forbidden");
  if (statusesOfMissing.has(problem.status)) return t("observe.missing");
  if (problem.status === 503) return t("observe.unavailable", { reason: problem.message });
  return problem.message;
}
