/** Where the reader writes what to look for: Enter opens the first thing found, Esc goes back. */

import { useMemo, useRef } from "preact/hooks";

import { t } from "../../i18n/catalogue";
import { EnterGuard, isComposing } from "../../input/enter_guard";
import { hashOf } from "../../router";
import type { SessionSearch } from "../../sessions/session_search";

/** What the server takes as a question. */
const maxQueryChars = 200;

interface SearchBoxProps {
  search: SessionSearch;
  /** Something was chosen; a sheet closes then. */
  onChoose: () => void;
}

export function SearchBox({ search, onChoose }: SearchBoxProps) {
  const guard = useMemo(() => new EnterGuard(), []);
  const field = useRef<HTMLInputElement>(null);
  const openFirst = () => {
    const [hit] = search.hits.value;
    if (hit === undefined) return;
    location.hash = hashOf(hit.conversation.id);
    onChoose();
  };
  const leave = () => {
    if (search.words.value === "") field.current?.blur();
    else search.clear();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (guard.isSend(event)) {
      openFirst();
    } else if (event.key === "Escape" && !isComposing(event)) {
      // The first Esc empties the field, the next one leaves it; neither does more than that.
      event.preventDefault();
      leave();
    }
  };
  return (
    <search class="search-box">
      <input
        ref={field}
        type="search"
        maxLength={maxQueryChars}
        aria-label={t("list.search")}
        placeholder={t("list.search")}
        dir="auto"
        value={search.words.value}
        onInput={(event) => search.type(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onCompositionEnd={(event) => guard.onCompositionEnd(event.timeStamp)}
      />
    </search>
  );
}
