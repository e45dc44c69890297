/** The ways to the views beside the chat. */

import { t } from "../../i18n/catalogue";
import { hashOfCache } from "../../router";
import { GaugeIcon, TreeIcon } from "../icons";
import type { SidebarProps } from "./sidebar";

export function PlaceLinks({ app, onChoose }: SidebarProps) {
  const { kind } = app.place.value;
  return (
    <ul class="places">
      <li>
        <a
          href={hashOfCache(null)}
          aria-current={kind === "cache" ? "page" : undefined}
          onClick={onChoose}
        >
          <TreeIcon /> {t("header.cache")}
        </a>
      </li>
      {app.login.isOperator.value && (
        <li>
          <a
            href="#/operator"
            aria-current={kind === "operator" ? "page" : undefined}
            onClick={onChoose}
          >
            <GaugeIcon /> {t("header.operator")}
          </a>
        </li>
      )}
    </ul>
  );
}
