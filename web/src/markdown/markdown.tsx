/**
 * A Markdown text that may still grow.
 *
 * Closed blocks are rendered once: their component refuses to render again for the same block. A
 * long text is drawn piece by piece, in the way in which one that is being written is.
 */

import "./markdown.css";

import { Component, type ComponentChildren, type VNode } from "preact";
import { useRef } from "preact/hooks";

import { BlockSplitter, type Block } from "./blocks";
import { renderBlock } from "./render";
import { useRevealed } from "./revealed";
import { Runs } from "./runs";

// A line of one or two marks is the beginning of a fence, or the end of one, until it is more.
const halfFence = /^ {0,3}(?:`{1,2}|~{1,2})$/;

export function Markdown({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  const splitter = useRef<BlockSplitter>(null);
  splitter.current ??= new BlockSplitter();
  const revealed = useRevealed(text);
  const isWhole = !isGrowing && revealed.length === text.length;
  const shown = isWhole ? revealed : withoutHalfFence(revealed);
  return (
    <div class="markdown">
      <Runs items={splitter.current.update(shown)} render={viewOf} />
    </div>
  );
}

function withoutHalfFence(text: string): string {
  const lastLine = text.lastIndexOf("\n") + 1;
  return halfFence.test(text.slice(lastLine)) ? text.slice(0, lastLine) : text;
}

function viewOf(block: Block): VNode {
  return <BlockView key={block.start} block={block} />;
}

class BlockView extends Component<{ block: Block }> {
  override shouldComponentUpdate(next: { block: Block }): boolean {
    return next.block !== this.props.block;
  }

  override render(): ComponentChildren {
    return renderBlock(this.props.block.token);
  }
}
