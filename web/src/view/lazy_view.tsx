/** A view that is loaded when it is first shown, its words too: a first visit pays for neither. */

import { useSignal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";

import { loadLaterWords, t } from "../i18n/catalogue";

interface LazyViewProps<Props> {
  load: () => Promise<ComponentType<Props>>;
  props: Props;
}

export function LazyView<Props extends object>({ load, props }: LazyViewProps<Props>) {
  const view = useSignal<{ View: ComponentType<Props> } | "loading" | "failed">("loading");
  const fetchView = () => {
    view.value = "loading";
    Promise.all([load(), loadLaterWords()]).then(
      ([View]) => (view.value = { View }),
      () => (view.value = "failed"),
    );
  };
  useEffect(fetchView, []);
  if (view.value === "loading") return <p class="notice quiet-notice">{t("session.loading")}</p>;
  if (view.value === "failed") {
    return (
      <div class="notice">
        <p>{t("error.unreachable")}</p>
        <button type="button" class="outlined" onClick={fetchView}>
          {t("common.retry")}
        </button>
      </div>
    );
  }
  const { View } = view.value;
  return <View {...props} />;
}
