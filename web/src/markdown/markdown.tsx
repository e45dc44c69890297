/**
 * A Markdown text that may still grow.
 *
 * Closed blocks are rendered once: their component refuses to render again for the same block.
 */

import "./markdown.css";

import { Component, type ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

import { BlockSplitter, type Block } from "./blocks";
import { renderBlock } from "./render";

// A line of one or two marks is the beginning of a fence, or the end of one, until it is more.
const halfFence = /(^|\n) {0,3}(?:`{1,2}|~{1,2})$/;

export function Markdown({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  const splitter = useRef<BlockSplitter>(null);
  splitter.current ??= new BlockSplitter();
  const shown = isGrowing ? text.replace(halfFence, "$1") : text;
  return (
    <div class="markdown" dir="auto">
      {splitter.current.update(shown).map((block) => (
        <BlockView key={block.start} block={block} />
      ))}
    </div>
  );
}

class BlockView extends Component<{ block: Block }> {
  override shouldComponentUpdate(next: { block: Block }): boolean {
    return next.block.token.raw !== this.props.block.token.raw;
  }

  override render(): ComponentChildren {
    return renderBlock(this.props.block.token);
  }
}
