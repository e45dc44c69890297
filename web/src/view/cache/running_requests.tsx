/** The running requests of the viewer; one of them can be followed on the page map. */

import type { CacheWatch } from "../../cache/cache_watch";
import { formatCount, plural, t } from "../../i18n/catalogue";
import type { WireCacheWorker, WireRunningRequest } from "../../wire/cache_snapshot";

interface RunningRequestsProps {
  watch: CacheWatch;
  worker: WireCacheWorker;
}

export function RunningRequests({ watch, worker }: RunningRequestsProps) {
  if (worker.requests.length === 0) return <p class="quiet-words">{t("cache.noRequest")}</p>;
  return (
    <div class="running-requests">
      <h3>{t("cache.requests")}</h3>
      <ul>
        {worker.requests.map((request, index) => (
          <li key={request.id ?? index}>
            <RequestRow watch={watch} request={request} />
          </li>
        ))}
      </ul>
    </div>
  );
}

interface RequestRowProps {
  watch: CacheWatch;
  request: WireRunningRequest;
}

function RequestRow({ watch, request }: RequestRowProps) {
  const { id, tenant } = request;
  return (
    <button
      type="button"
      class="outlined"
      data-named={tenant !== null}
      disabled={id === null}
      aria-pressed={id === null ? undefined : watch.request.value?.id === id}
      onClick={() => id !== null && watch.toggleRequest(id)}
    >
      <RequestWords request={request} />
    </button>
  );
}

function RequestWords({ request }: { request: WireRunningRequest }) {
  const { num_cached_tokens, num_prompt_tokens, num_output_tokens, pages } = request;
  return (
    <>
      <span class="request-id">{request.id ?? t("cache.requestOfOther")}</span>
      {request.tenant !== null && <span>{request.tenant}</span>}
      <span class="request-state" data-state={request.state}>
        {t(`cache.request.${request.state}`)}
      </span>
      <span>
        {t("figures.cachedShare", {
          cached: formatCount(num_cached_tokens),
          total: formatCount(num_prompt_tokens),
        })}
      </span>
      <span>{plural("cache.numWritten", num_output_tokens)}</span>
      <span>{plural("cache.numPages", pages.length)}</span>
    </>
  );
}
