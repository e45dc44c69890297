/** A text as it is once all of it is drawn, as a string. */

import { Fragment } from "preact";
import { renderToString } from "preact-render-to-string";

import { parse } from "../src/markdown/blocks";
import { renderBlock } from "../src/markdown/render";

export function renderWhole(text: string): string {
  return renderToString(
    <>
      {parse(text).map(({ start, token }) => (
        <Fragment key={start}>{renderBlock(token)}</Fragment>
      ))}
    </>,
  );
}
