/**
 * Markdown tokens as elements of the page.
 *
 * Text of a model reaches the document as text nodes and as nothing else: no HTML string is made
 * anywhere, so there is none to sanitise. The elements and attributes that can appear are the ones
 * written here. Images and raw HTML stay the text they are written as, and only addresses that
 * `safeHref` allows become links.
 */

import type { MarkedToken, Token, Tokens } from "marked";
import { Fragment, type ComponentChildren, type VNode } from "preact";

import { CodeBlock } from "../view/code_block";
import { t } from "../i18n/catalogue";
import { directionOf } from "./direction";
import { decodeEntities } from "./entities";
import { isClosedFence } from "./fences";
import { safeHref } from "./links";
import { MathView } from "./math";
import type { MathToken } from "./math_syntax";
import type { PieceToken } from "./language";
import { Once } from "./once";
import { Runs } from "./runs";

type KnownToken = MarkedToken | MathToken | PieceToken;

export function renderBlock(token: Token): ComponentChildren {
  const block = token as KnownToken;
  switch (block.type) {
    case "heading":
      return renderHeading(block);
    case "code":
      return (
        <CodeBlock
          language={block.lang ?? ""}
          code={block.text}
          isClosed={isClosedFence(block.raw)}
        />
      );
    case "blockquote":
      return <blockquote dir={directionOf(block.raw)}>{renderBlocks(block.tokens)}</blockquote>;
    case "list":
      return renderList(block);
    case "table":
      return renderTable(block);
    case "hr":
      return <hr />;
    case "paragraph":
      return <p dir={directionOf(block.raw)}>{renderInline(block.tokens)}</p>;
    case "space":
      return null;
    default:
      return renderInlineToken(block);
  }
}

function renderBlocks(tokens: readonly Token[]): ComponentChildren {
  return tokens.map((token, index) => <Fragment key={index}>{renderBlock(token)}</Fragment>);
}

function renderInline(tokens: readonly Token[]): ComponentChildren {
  return tokens.map((token, index) => <Fragment key={index}>{renderInlineToken(token)}</Fragment>);
}

function renderInlineToken(token: Token): ComponentChildren {
  const inline = token as KnownToken;
  switch (inline.type) {
    case "strong":
      return <strong>{renderInline(inline.tokens)}</strong>;
    case "em":
      return <em>{renderInline(inline.tokens)}</em>;
    case "del":
      return <del>{renderInline(inline.tokens)}</del>;
    case "codespan":
      return <code>{inline.text}</code>;
    case "br":
      return <br />;
    case "link":
      return renderLink(inline);
    case "checkbox":
      return <input type="checkbox" checked={inline.checked} disabled />;
    case "text":
      return inline.tokens ? renderInline(inline.tokens) : decodeEntities(inline.text);
    case "piece":
      return <span class="piece">{decodeEntities(inline.text)}</span>;
    case "escape":
      return inline.text;
    case "math":
      return <MathView {...inline} />;
    default:
      return inline.raw;
  }
}

/** The page has headings of its own; those of an answer rank below them. */
function renderHeading({ depth, raw, tokens }: Tokens.Heading): VNode {
  const Heading = `h${Math.min(6, depth + 2)}` as "h3";
  return <Heading dir={directionOf(raw)}>{renderInline(tokens)}</Heading>;
}

function renderList(list: Tokens.List): VNode {
  const items = <Runs items={list.items} render={renderItemOnce} />;
  const dir = directionOf(list.raw);
  if (!list.ordered) return <ul dir={dir}>{items}</ul>;
  return (
    <ol dir={dir} start={list.start === "" ? 1 : list.start}>
      {items}
    </ol>
  );
}

function renderItemOnce(item: Tokens.ListItem, index: number): VNode {
  return <Once key={index} of={item} render={renderItem} />;
}

function renderItem({ task, raw, tokens }: Tokens.ListItem): VNode {
  return (
    <li class={task ? "task" : undefined} dir={directionOf(raw)}>
      {renderBlocks(tokens)}
    </li>
  );
}

function renderTable({ header, raw, rows }: Tokens.Table): VNode {
  return (
    <div class="table-box" tabIndex={0} role="group" aria-label={t("markdown.table")}>
      <table dir={directionOf(raw)}>
        <thead>
          <tr>{header.map(renderCell)}</tr>
        </thead>
        <tbody>
          <Runs items={rows} render={renderRowOnce} />
        </tbody>
      </table>
    </div>
  );
}

function renderRowOnce(row: Tokens.TableCell[], index: number): VNode {
  return <Once key={index} of={row} render={renderRow} />;
}

function renderRow(row: Tokens.TableCell[]): VNode {
  return <tr>{row.map(renderCell)}</tr>;
}

function renderCell(cell: Tokens.TableCell, index: number): VNode {
  const Cell = cell.header ? "th" : "td";
  return (
    <Cell
      key={index}
      class={cell.align === null ? undefined : `align-${cell.align}`}
      dir={directionOf(cell.text)}
    >
      {renderInline(cell.tokens)}
    </Cell>
  );
}

function renderLink({ href, raw, tokens, autolink }: Tokens.Link): ComponentChildren {
  const address = safeHref(autolink ? href : decodeEntities(href));
  if (address === null) return raw;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow">
      {renderInline(tokens)}
    </a>
  );
}
