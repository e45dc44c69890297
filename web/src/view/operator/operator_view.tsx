/** The tenants and workers of the service, live, for its operator. */

import "./operator.css";

import { useEffect, useMemo } from "preact/hooks";

import type { App } from "../../app";
import { t } from "../../i18n/catalogue";
import { Poll } from "../../observe/poll";
import { getOverview } from "../../wire/api";
import type { WireOverview } from "../../wire/overview";
import { ProblemNotice } from "../observe/problem_notice";
import { TenantsPane } from "./tenants_pane";
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
  const poll = useMemo(() => new Poll<WireOverview>(getOverview, intervalMs), []);
  useEffect(() => {
    poll.start();
    return () => poll.stop();
  }, [poll]);
  return <OverviewPanes poll={poll} />;
}

/** What a poll has read. */
export function OverviewPanes({ poll }: { poll: Poll<WireOverview> }) {
  const overview = poll.reading.value?.value;
  if (overview === undefined && poll.problem.value === null) {
    return <p class="quiet-words">{t("session.loading")}</p>;
  }
  return (
    <>
      <ProblemNotice poll={poll} />
      {overview !== undefined && (
        <>
          <WorkersPane workers={overview.workers} />
          <TenantsPane tenants={overview.tenants} />
        </>
      )}
    </>
  );
}
