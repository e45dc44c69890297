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
        {worker.requests.map((request) => (
          <li key={request.id}>
            <button
              type="button"
              class="outlined"
              data-own={request.tenant === null}
              aria-pressed={watch.request.value?.id === request.id}
              onClick={() => watch.toggleRequest(request.id)}
            >
              <RequestWords request={request} />
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

function RequestWords({ request }: { request: WireRunningRequest }) {
  const { num_cached_tokens, num_prompt_tokens, num_output_tokens, pages } = request;
  return (
    <>
      <span class="request-id">{request.id}</span>
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
