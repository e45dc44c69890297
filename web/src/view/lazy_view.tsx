/**
 * A view that is loaded when it is first shown, its words too: a first visit pays for neither.
 *
 * Once it is there it is drawn at once wherever it is shown again. Where it cannot be had the reader
 * is told, and can have it tried again.
 */

import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";

import { loadLaterWords, t } from "../i18n/catalogue";
import { LazyModule } from "../lazy_module";

type LazyView<Props extends object> = ComponentType<Props> & {
  /** Load it, since it will be shown soon; settles either way. */
  request(): Promise<void>;
};

export function lazyView<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): LazyView<Props> {
  const part = new LazyModule(async () => {
    const [View] = await Promise.all([load(), loadLaterWords()]);
    return { View };
  });
  const View = (props: Props) => {
    useEffect(() => void part.request(), []);
    const { value: loaded } = part.current;
    if (loaded !== null) return <loaded.View {...props} />;
    return part.hasFailed.value ? <Failure onRetry={() => void part.request()} /> : <Loading />;
  };
  return Object.assign(View, { request: () => part.request() });
}

function Loading() {
  return <p class="notice quiet-notice">{t("session.loading")}</p>;
}

function Failure({ onRetry }: { onRetry: () => void }) {
  return (
    <div class="notice">
      <p>{t("error.unreachable")}</p>
      <button type="button" class="outlined" onClick={onRetry}>
        {t("common.retry")}
      </button>
    </div>
  );
}
