/** The prefix cache as a picture: tree, page map and batch of one worker, live. */

import "./cache_view.css";

import { useMemo } from "preact/hooks";

import type { App } from "../../app";
import { CacheWatch } from "../../cache/cache_watch";
import { formatAge } from "../../i18n/age";
import { t } from "../../i18n/catalogue";
import { hashOfCache } from "../../router";
import type { WireCacheWorker } from "../../wire/cache_snapshot";
import { ProblemNotice } from "../observe/problem_notice";
import { usePoll } from "../observe/use_poll";
import { BatchPane } from "./batch_pane";
import { PageMapPane } from "./page_map_pane";
import { TreePane } from "./tree_pane";

export function CacheView({ app }: { app: App }) {
  const place = app.place.value;
  const tenant = place.kind === "cache" ? place.tenant : null;
  const watch = useMemo(() => new CacheWatch(tenant, app.next.model.peek()?.id ?? null), [tenant]);
  usePoll(watch.poll);
  return <CachePanes watch={watch} tenant={tenant} />;
}

/** What a watch has seen; `tenant` is the one that an operator asked for. */
export function CachePanes({ watch, tenant }: { watch: CacheWatch; tenant: string | null }) {
  const worker = watch.worker.value;
  return (
    <div class="observe">
      <div class="observe-body">
        <ProblemNotice poll={watch.poll} />
        <Scope watch={watch} tenant={tenant} />
        {worker !== null && (
          <>
            <TreePane key={worker.id} worker={worker} layout={watch.tree.value} />
            <PageMapPane watch={watch} worker={worker} />
            <BatchPane worker={worker} />
          </>
        )}
        <Nothing watch={watch} />
      </div>
    </div>
  );
}

function Scope({ watch, tenant }: { watch: CacheWatch; tenant: string | null }) {
  const cache = watch.poll.reading.value?.value;
  const worker = watch.worker.value;
  if (cache === undefined || worker === null) return null;
  return (
    <div class="cache-scope">
      <p class="quiet-words">
        {tenant === null ? t(`cache.viewer.${cache.view}`) : t("cache.viewer.one", { tenant })}{" "}
        {tenant !== null && <a href={hashOfCache(null)}>{t("cache.allTenants")}</a>}
      </p>
      <WorkerChoice watch={watch} worker={worker} />
      <Silence watch={watch} />
    </div>
  );
}

function WorkerChoice({ watch, worker }: { watch: CacheWatch; worker: WireCacheWorker }) {
  const workers = watch.workers.value;
  if (workers.length < 2) return <span class="worker-name">{nameOf(worker)}</span>;
  return (
    <label class="worker-choice">
      {t("cache.worker")}
      <select value={worker.id} onChange={(event) => watch.chooseWorker(event.currentTarget.value)}>
        {workers.map((each) => (
          <option key={each.id} value={each.id}>
            {nameOf(each)}
          </option>
        ))}
      </select>
    </label>
  );
}

function nameOf({ id, model }: WireCacheWorker): string {
  return `${model} · ${id}`;
}

function Silence({ watch }: { watch: CacheWatch }) {
  const seconds = watch.silenceS.value;
  if (seconds === null || watch.poll.problem.value !== null) return null;
  return (
    <p class="silence" role="status">
      {t("cache.silent", { age: formatAge(Math.floor(seconds)) })}
    </p>
  );
}

/** What stands where there is no worker to show. */
function Nothing({ watch }: { watch: CacheWatch }) {
  if (watch.worker.value !== null || watch.poll.problem.value !== null) return null;
  const isAnswered = watch.poll.reading.value !== null;
  return <p class="quiet-words">{t(isAnswered ? "cache.noWorker" : "session.loading")}</p>;
}
