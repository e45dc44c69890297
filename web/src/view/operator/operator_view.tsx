/** The tenants, workers and queues of the service, live, for its operator. */

import "./operator.css";

import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";

import type { App } from "../../app";
import { plural, t } from "../../i18n/catalogue";
import { Poll } from "../../observe/poll";
import { getOverview } from "../../wire/service_api";
import type { WireOverview } from "../../wire/overview";
import { ProblemNotice } from "../observe/problem_notice";
import { usePoll } from "../observe/use_poll";
import { ChangesPane } from "./changes_pane";
import { TenantsPane, type TenantPaging } from "./tenants_pane";
import { WorkersPane } from "./workers_pane";

const intervalMs = 2_000;

export function OperatorView({ app }: { app: App }) {
  const { identity, isOperator } = app.login;
  return (
    <div class="observe">
      <div class="observe-body">
        {isOperator.value && <Overview />}
        {identity.value !== null && !isOperator.value && <p>{t("operator.membersOnly")}</p>}
      </div>
    </div>
  );
}

function Overview() {
  /** The last tenant before each page that was gone through; the present page's is the last. */
  const before = useSignal<readonly (string | null)[]>([null]);
  const after = before.value.at(-1) ?? null;
  const poll = useMemo(() => new Poll(() => getOverview(after), intervalMs), [after]);
  usePoll(poll);
  const paging: TenantPaging = {
    isFirst: before.value.length === 1,
    onNext: (lastTenant) => (before.value = [...before.value, lastTenant]),
    onPrevious: () => (before.value = before.value.slice(0, -1)),
  };
  return <OverviewPanes poll={poll} paging={paging} />;
}

interface OverviewPanesProps {
  poll: Poll<WireOverview>;
  paging: TenantPaging;
}

/** What a poll has read. */
export function OverviewPanes({ poll, paging }: OverviewPanesProps) {
  const overview = poll.reading.value?.value;
  if (overview === undefined && poll.problem.value === null) {
    return <p class="quiet-words">{t("session.loading")}</p>;
  }
  return (
    <>
      <ProblemNotice poll={poll} />
      {overview !== undefined && (
        <>
          <Gateway gateway={overview.gateway} />
          <WorkersPane workers={overview.workers} queues={overview.queues} />
          <TenantsPane tenants={overview.tenants} hasMore={overview.has_more} paging={paging} />
          <ChangesPane />
        </>
      )}
    </>
  );
}

function Gateway({ gateway }: { gateway: WireOverview["gateway"] }) {
  const { version, connections, is_draining } = gateway;
  return (
    <p class="quiet-words">
      {plural("operator.gateway", connections, { version })}
      {is_draining && ` ${t("operator.gatewayDraining")}`}
    </p>
  );
}
