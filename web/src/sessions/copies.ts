/** The copies that this browser makes of sessions and of their list, and what one must have to be used. */

import { isListOf, isMadeOf, isMaybe, isNumber, isText } from "../shape";
import type { WireConversation, WireItem, WireList } from "../wire/protocol";
import { byTime } from "./browser_database";

export interface ListCopy {
  page: WireList<WireConversation>;
  pinned: WireConversation[];
}

export interface Copy {
  session: WireConversation;
  items: WireItem[];
  [byTime]: number;
}

const isSession = isMadeOf({
  id: isText,
  title: isText,
  created_at: isNumber,
  updated_at: isNumber,
  active_response_ids: isListOf(isText),
  "chatserve:version": isMaybe(isNumber),
});

const isTimed = isMaybe(isNumber);

const isItem = isMadeOf({
  id: isText,
  type: isText,
  role: isText,
  status: isText,
  content: isListOf(isMadeOf({ text: isText })),
  "chatserve:parent_id": isMaybe(isText),
  "chatserve:response_id": isMaybe(isText),
  "chatserve:incomplete_reason": isMaybe(isText),
  "chatserve:error": isMaybe(isMadeOf({ message: isText, code: isMaybe(isText) })),
  "chatserve:usage": isMaybe(
    isMadeOf({
      input_tokens: isNumber,
      input_tokens_details: isMadeOf({ cached_tokens: isNumber }),
      output_tokens: isNumber,
    }),
  ),
  "chatserve:timings": isMaybe(
    isMadeOf({
      queue_ms: isTimed,
      prefill_ms: isTimed,
      ttft_ms: isTimed,
      itl_p50_ms: isTimed,
      tok_s: isTimed,
    }),
  ),
});

const isCopyLike = isMadeOf({ session: isSession, items: isListOf(isItem), [byTime]: isNumber });
const isListLike = isMadeOf({ page: isMadeOf({ data: isListOf(isSession) }), pinned: isListOf(isSession) });

export function isCopy(value: unknown): value is Copy {
  return isCopyLike(value);
}

export function isListCopy(value: unknown): value is ListCopy {
  return isListLike(value);
}
