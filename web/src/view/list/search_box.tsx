/** Where the reader writes what to look for. */

import { useRef } from "preact/hooks";

import { t } from "../../i18n/catalogue";
import type { SessionSearch } from "../../sessions/session_search";

export function SearchBox({ search }: { search: SessionSearch }) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <search class="search-box">
      <input
        ref={field}
        type="search"
        aria-label={t("list.search")}
        placeholder={t("list.search")}
        dir="auto"
        value={search.words.value}
        onInput={(event) => search.type(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape" || event.isComposing) return;
          // The first Esc empties the field, the next one leaves it; neither stops an answer.
          event.stopPropagation();
          if (search.words.value === "") field.current?.blur();
          else search.clear();
        }}
      />
    </search>
  );
}
