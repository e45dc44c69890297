/** Each tenant's load, what it used today, and how much of its limits. */

import { formatCount, formatShare, plural, t } from "../../i18n/catalogue";
import { quotaName } from "../../operator/limits";
import { hashOfCache } from "../../router";
import type { WireTenantOverview } from "../../wire/overview";
import { TypedWords } from "../typed_words";
import { UsageBar } from "./usage_bar";

export interface TenantPaging {
  isFirst: boolean;
  onNext: (lastTenant: string) => void;
  onPrevious: () => void;
}

interface TenantsPaneProps {
  tenants: readonly WireTenantOverview[];
  hasMore: boolean;
  paging: TenantPaging;
}

export function TenantsPane({ tenants, hasMore, paging }: TenantsPaneProps) {
  const last = tenants.at(-1);
  return (
    <section class="pane" aria-labelledby="tenants-heading">
      <div class="pane-head">
        <h2 id="tenants-heading">{t("operator.tenants")}</h2>
      </div>
      {last === undefined ? (
        <p class="quiet-words">
          <TypedWords text={t("operator.noTenant")} />
        </p>
      ) : (
        <Tenants tenants={tenants} />
      )}
      {(hasMore || !paging.isFirst) && (
        <div class="paging">
          <button
            type="button"
            class="outlined"
            disabled={paging.isFirst}
            onClick={paging.onPrevious}
          >
            {t("operator.previousTenants")}
          </button>
          <button
            type="button"
            class="outlined"
            disabled={!hasMore || last === undefined}
            onClick={() => last !== undefined && paging.onNext(last.name)}
          >
            {t("operator.nextTenants")}
          </button>
        </div>
      )}
    </section>
  );
}

function Tenants({ tenants }: { tenants: readonly WireTenantOverview[] }) {
  return (
    <div class="observe-table">
      <table class="tenants">
        <thead>
          <tr>
            <th scope="col">{t("operator.tenant")}</th>
            <th scope="col" class="number">
              {t("operator.running")}
            </th>
            <th scope="col" class="number">
              {t("operator.waiting")}
            </th>
            <th scope="col">{t("operator.today")}</th>
            <th scope="col">{t("operator.limits")}</th>
          </tr>
        </thead>
        <tbody>
          {tenants.map((tenant) => (
            <TenantRow key={tenant.name} tenant={tenant} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TenantRow({ tenant }: { tenant: WireTenantOverview }) {
  const { requests, input_tokens, cached_tokens, output_tokens } = tenant.usage_today;
  const limits = Object.entries(tenant.limits);
  return (
    <tr>
      <th scope="row">
        {tenant.name}
        <a
          class="to-cache"
          href={hashOfCache(tenant.name)}
          aria-label={t("operator.cacheOf", { tenant: tenant.name })}
        >
          {t("operator.cache")}
        </a>
      </th>
      <td class="number" data-column={t("operator.running")}>
        {formatCount(tenant.requests_running)}
      </td>
      <td class="number" data-column={t("operator.waiting")}>
        {formatCount(tenant.requests_queued)}
      </td>
      <td class="today" data-column={t("operator.today")}>
        {plural("operator.usage", requests, {
          input: formatCount(input_tokens),
          output: formatCount(output_tokens),
        })}
        {input_tokens > 0 && (
          <span class="of-cache">
            {t("operator.usageCached", { share: formatShare(cached_tokens / input_tokens) })}
          </span>
        )}
      </td>
      <td data-column={t("operator.limits")}>
        {limits.length === 0 ? (
          <span class="quiet-words">{t("operator.unlimited")}</span>
        ) : (
          <ul class="limits">
            {limits.map(([name, { used, limit }]) => (
              <li key={name}>
                <UsageBar name={quotaName(name)} used={used} limit={limit} />
              </li>
            ))}
          </ul>
        )}
      </td>
    </tr>
  );
}
