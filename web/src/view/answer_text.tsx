/** The text of an answer: as Markdown, and as it was written until that can be read. */

import { useEffect } from "preact/hooks";

import { LazyModule } from "../lazy_module";

/** Asked for as soon as an answer is on its way, so that it is there before the first word. */
export const markdown = new LazyModule(() => import("../markdown/markdown"));

/** Have Markdown ready: an answer will be shown. */
export function useMarkdown(): void {
  useEffect(() => void markdown.request(), []);
}

export function AnswerText({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  const { value: loaded } = markdown.current;
  if (loaded !== null) return <loaded.Markdown text={text} isGrowing={isGrowing} />;
  return (
    <div class="markdown unread" dir="auto">
      {text}
    </div>
  );
}
