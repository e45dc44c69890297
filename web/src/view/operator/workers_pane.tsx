/** Each worker's pages, hit rate and load, and when it was last heard. */

import { formatAge } from "../../i18n/age";
import { formatCount, formatShare, t } from "../../i18n/catalogue";
import { healthOf } from "../../operator/worker_health";
import type { WireWorkerOverview } from "../../wire/overview";
import { UsageBar } from "./usage_bar";

export function WorkersPane({ workers }: { workers: readonly WireWorkerOverview[] }) {
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
    </section>
  );
}

function WorkerCard({ worker }: { worker: WireWorkerOverview }) {
  const health = healthOf(worker);
  const numUsed = worker.num_pages - worker.num_free_pages;
  return (
    <li class="worker-card" data-health={health}>
      <div class="worker-head">
        <h3>{worker.id}</h3>
        <span class="health">{t(`operator.health.${health}`)}</span>
        <p>{worker.model}</p>
      </div>
      <UsageBar name={t("operator.pagesUsed")} used={numUsed} limit={worker.num_pages} />
      <dl>
        <Figure name={t("operator.hitRate")}>
          {worker.hit_rate === null ? "–" : formatShare(worker.hit_rate)}
        </Figure>
        <Figure name={t("operator.running")}>{formatCount(worker.num_running)}</Figure>
        <Figure name={t("operator.waiting")}>{formatCount(worker.num_waiting)}</Figure>
        <Figure name={t("operator.beat")}>
          {t("operator.ago", { age: formatAge(worker.beat_age_s) })}
        </Figure>
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
