/** Each worker's pages, hit rate and load, when it was last heard, and the queue of each model. */

import { formatAge } from "../../i18n/age";
import { formatCount, formatShare, t } from "../../i18n/catalogue";
import { healthOf, hitRate } from "../../operator/worker_health";
import type { WireQueueOverview, WireWorkerOverview } from "../../wire/overview";
import { UsageBar } from "./usage_bar";

interface WorkersPaneProps {
  workers: readonly WireWorkerOverview[];
  queues: readonly WireQueueOverview[];
}

export function WorkersPane({ workers, queues }: WorkersPaneProps) {
  return (
    <section class="pane" aria-labelledby="workers-heading">
      <div class="pane-head">
        <h2 id="workers-heading">{t("operator.workers")}</h2>
      </div>
      {workers.length === 0 ? (
        <p class="quiet-words">{t("cache.noWorker")}</p>
      ) : (
        <ul class="workers">
          {workers.map((worker) => (
            <WorkerCard key={worker.id} worker={worker} />
          ))}
        </ul>
      )}
      <ul class="queues">
        {queues.map(({ model, length, max_length }) => (
          <li key={model}>
            <UsageBar name={t("operator.queueOf", { model })} used={length} limit={max_length} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function WorkerCard({ worker }: { worker: WireWorkerOverview }) {
  const health = healthOf(worker);
  const rate = hitRate(worker);
  const { num_pages, pages_used, pages_cached, beat_age_ms } = worker;
  return (
    <li class="worker-card" data-health={health}>
      <div class="worker-head">
        <h3>{worker.id}</h3>
        <span class="health">{t(`operator.health.${health}`)}</span>
        {beat_age_ms !== null && (
          <span class="beat">{t("operator.beat", { age: formatAge(beat_age_ms / 1_000) })}</span>
        )}
        <p>
          {worker.model} · {worker.version}
        </p>
      </div>
      <UsageBar name={t("operator.pagesUsed")} used={pages_used} limit={num_pages} />
      <dl>
        <Figure name={t("operator.pagesCached")}>{formatCount(pages_cached)}</Figure>
        <Figure name={t("operator.hitRate")}>{rate === null ? "–" : formatShare(rate)}</Figure>
        <Figure name={t("operator.running")}>{formatCount(worker.requests_running)}</Figure>
        <Figure name={t("operator.waiting")}>{formatCount(worker.requests_waiting)}</Figure>
      </dl>
    </li>
  );
}

function Figure({ name, children }: { name: string; children: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
