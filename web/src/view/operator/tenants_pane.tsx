/** Each tenant's load, what it used today, and how much of its limits. */

import { formatCount, t } from "../../i18n/catalogue";
import { quotaName } from "../../operator/limits";
import { hashOfCache } from "../../router";
import type { WireTenantOverview } from "../../wire/overview";
import { UsageBar } from "./usage_bar";

export function TenantsPane({ tenants }: { tenants: readonly WireTenantOverview[] }) {
  return (
    <section class="pane" aria-labelledby="tenants-heading">
      <div class="pane-head">
        <h2 id="tenants-heading">{t("operator.tenants")}</h2>
      </div>
      {tenants.length === 0 ? <p class="quiet-words">{t("operator.noTenant")}</p> : <Tenants tenants={tenants} />}
    </section>
  );
}

function Tenants({ tenants }: { tenants: readonly WireTenantOverview[] }) {
  return (
    <div class="observe-table">
      <table>
        <thead>
          <tr>
            <th scope="col">{t("operator.tenant")}</th>
            <th scope="col" class="number">{t("operator.running")}</th>
            <th scope="col" class="number">{t("operator.waiting")}</th>
            <th scope="col" class="number">{t("operator.connections")}</th>
            <th scope="col">{t("operator.today")}</th>
            <th scope="col">{t("operator.limits")}</th>
          </tr>
        </thead>
        <tbody>
          {tenants.map((tenant) => (
            <TenantRow key={tenant.id} tenant={tenant} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TenantRow({ tenant }: { tenant: WireTenantOverview }) {
  const { requests, input_tokens, cached_tokens, output_tokens } = tenant.usage_today;
  return (
    <tr>
      <th scope="row">
        {tenant.id}
        <a class="to-cache" href={hashOfCache(tenant.id)} aria-label={t("operator.cacheOf", { tenant: tenant.id })}>
          {t("operator.cache")}
        </a>
      </th>
      <td class="number">{formatCount(tenant.num_running)}</td>
      <td class="number">{formatCount(tenant.num_waiting)}</td>
      <td class="number">{formatCount(tenant.num_connections)}</td>
      <td class="today">
        {t("operator.usage", {
          requests: formatCount(requests),
          input: formatCount(input_tokens),
          output: formatCount(output_tokens),
        })}
        <span class="of-cache">{t("operator.usageCached", { cached: formatCount(cached_tokens) })}</span>
      </td>
      <td>
        {tenant.limits.length === 0 ? (
          <span class="quiet-words">{t("operator.unlimited")}</span>
        ) : (
          <ul class="limits">
            {tenant.limits.map((limit) => (
              <li key={limit.name}>
                <UsageBar name={quotaName(limit.name)} used={limit.used} limit={limit.limit} />
              </li>
            ))}
          </ul>
        )}
      </td>
    </tr>
  );
}
