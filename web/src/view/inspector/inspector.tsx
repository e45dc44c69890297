/**
 * The panel beside the chat: how answers are asked for, what the conversation begins with, and
 * everything that is known of one answer.
 */

import "./inspector.css";

import { useEffect, useRef } from "preact/hooks";

import type { App } from "../../app";
import { t } from "../../i18n/catalogue";
import { CloseIcon } from "../icons";
import { AnswerSection } from "./answer_section";
import { ParametersSection } from "./parameters_section";
import { SystemPromptSection } from "./system_prompt_section";

export function Inspector({ app }: { app: App }) {
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => {
    app.offer.refresh();
    return () => (app.inspected.value = null);
  }, [app]);
  useReturnOfFocus(panel);
  return (
    <div class="inspector" ref={panel}>
      <header>
        <h2>{t("header.inspector")}</h2>
        <button
          type="button"
          class="quiet"
          aria-label={t("common.close")}
          onClick={() => app.layout.toggleInspector()}
        >
          <CloseIcon />
        </button>
      </header>
      <ParametersSection app={app} />
      <SystemPromptSection app={app} />
      <AnswerSection app={app} />
    </div>
  );
}

/** When the panel goes with the focus in it, the focus goes back to where it came from. */
function useReturnOfFocus(panel: { readonly current: HTMLElement | null }): void {
  // Asked for before the first effect, since an effect of a section may take the focus.
  const { current: opener } = useRef(document.activeElement);
  useEffect(() => {
    const element = panel.current;
    return () => {
      const isInside = element?.contains(document.activeElement) ?? false;
      const isNowhere = document.activeElement === document.body;
      if ((isInside || isNowhere) && opener instanceof HTMLElement) opener.focus();
    };
  }, [panel]);
}
