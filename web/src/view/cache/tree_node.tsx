/** One node of the tree, and the line to it. */

import { cutTo, figuresOf, headOf, linesOf } from "../../cache/node_words";
import {
  columnWidth,
  middleOf,
  rootX,
  type PlacedNode,
  type TreeLayout,
} from "../../cache/tree_layout";

const labelGap = 8;
/** What a Latin character of a label takes on average. */
const characterWidth = 6.9;
const bendWidth = 32;
const ringGap = 3;
const maxStroke = 8;

interface TreeNodeProps {
  placed: PlacedNode;
  isEntry: boolean;
  onPoint: (isOn: boolean) => void;
  onFocus: (isOn: boolean) => void;
}

export function TreeNode({ placed, isEntry, onPoint, onFocus }: TreeNodeProps) {
  const { node, x, y, width, height } = placed;
  return (
    <>
      <g
        class="node"
        role="treeitem"
        aria-level={placed.depth + 1}
        aria-label={[headOf(node), ...linesOf(node)].join(", ")}
        tabindex={isEntry ? 0 : -1}
        data-node={node.id}
        data-scope={node.scope}
        onPointerEnter={() => onPoint(true)}
        onPointerLeave={() => onPoint(false)}
        onFocus={() => onFocus(true)}
        onBlur={() => onFocus(false)}
      >
        <rect class="reach" x={x} y={middleOf(placed) - 18} width={reachOf(placed)} height="36" />
        {node.pinned && (
          <rect
            class="ring"
            x={x - ringGap}
            y={y - ringGap}
            width={width + 2 * ringGap}
            height={height + 2 * ringGap}
            rx="5"
          />
        )}
        <rect class="body" x={x} y={y} width={width} height={height} rx="3" />
      </g>
      <Label placed={placed} />
    </>
  );
}

/**
 * Words above the line to the children, figures below it.
 *
 * They stand beside the item: its name says more than them, and in whole words.
 */
function Label({ placed }: { placed: PlacedNode }) {
  const { node, x, width } = placed;
  const left = x + width + labelGap;
  const room = reachOf(placed) - width - labelGap;
  const middle = middleOf(placed);
  return (
    <g class="label" aria-hidden="true">
      <text class="words" x={left} y={middle - 5} data-foreign={node.text === null}>
        {cutTo(node.text ?? node.tenant ?? "", Math.floor(room / characterWidth))}
      </text>
      <text class="numbers" x={left} y={middle + 14}>
        {cutTo(figuresOf(node), Math.floor(room / characterWidth))}
      </text>
    </g>
  );
}

/** Return how far a node and its words go before the lines to its children bend. */
function reachOf({ children }: PlacedNode): number {
  return columnWidth - (children.length === 0 ? labelGap : bendWidth);
}

/** The line to a node from its parent: as wide as requests share it. */
export function NodeLink({ placed, layout }: { placed: PlacedNode; layout: TreeLayout }) {
  const { node, parent } = placed;
  const from =
    parent === null
      ? { x: rootX, bend: rootX, y: layout.height / 2 }
      : { x: parent.x + parent.width, bend: placed.x - bendWidth, y: middleOf(parent) };
  const to = { x: placed.x, y: middleOf(placed) };
  const half = (from.bend + to.x) / 2;
  return (
    <path
      class="link"
      data-scope={node.scope}
      data-shared={node.num_sharers > 0}
      stroke-width={node.num_sharers === 0 ? 1 : 1 + Math.min(maxStroke, node.num_sharers)}
      d={`M${from.x} ${from.y}H${from.bend}C${half} ${from.y} ${half} ${to.y} ${to.x} ${to.y}`}
    />
  );
}
