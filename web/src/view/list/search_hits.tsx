/** What a search has found: sessions, and the places in them. */

import { plural, t } from "../../i18n/catalogue";
import { hashOf } from "../../router";
import { markWords } from "../../sessions/marked_words";
import type { SessionSearch } from "../../sessions/session_search";
import type { WireHit } from "../../wire/protocol";

interface SearchHitsProps {
  search: SessionSearch;
  onChoose: () => void;
}

export function SearchHits({ search, onChoose }: SearchHitsProps) {
  const hits = search.hits.value;
  return (
    <section aria-label={t("list.found")}>
      <p class="note" role="status">
        {search.problem.value ?? stateWords(search)}
      </p>
      <ul>
        {hits.map((hit) => (
          <HitRow key={hit.conversation.id} hit={hit} words={search.words.value} onChoose={onChoose} />
        ))}
      </ul>
      {search.hasMore.value && !search.isSearching.value && (
        <button type="button" class="quiet" onClick={() => void search.loadMore()}>
          {t("list.searchMore")}
        </button>
      )}
    </section>
  );
}

function stateWords(search: SessionSearch): string {
  const numHits = search.hits.value.length;
  if (numHits > 0) return plural("list.hits", numHits);
  return search.isSearching.value ? t("list.searching") : t("list.nothingFound");
}

interface HitRowProps {
  hit: WireHit;
  words: string;
  onChoose: () => void;
}

function HitRow({ hit: { conversation, matches }, words, onChoose }: HitRowProps) {
  const title = conversation.title || t("session.untitled");
  const places = matches.filter((match) => match.item_id !== null);
  return (
    <li class="hit">
      <a href={hashOf(conversation.id)} dir="auto" onClick={onChoose}>
        <Marked text={title} words={words} />
      </a>
      {places.map(({ item_id, excerpt }) => (
        <a
          key={item_id}
          class="excerpt"
          href={hashOf(conversation.id, item_id)}
          dir="auto"
          onClick={onChoose}
        >
          <Marked text={excerpt} words={words} />
        </a>
      ))}
    </li>
  );
}

function Marked({ text, words }: { text: string; words: string }) {
  return (
    <>
      {markWords(text, words).map((piece, index) =>
        index % 2 === 0 ? piece : <mark key={index}>{piece}</mark>,
      )}
    </>
  );
}
