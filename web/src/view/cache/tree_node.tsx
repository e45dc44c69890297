/** One node of the tree, and the line to it. */

import { Fragment } from "preact";

import { charactersIn, type LabelSize } from "../../cache/label_size";
import { cutTo, cutTurns, figuresOf, headOf, linesOf, turnsOf } from "../../cache/node_words";
import {
  columnWidth,
  middleOf,
  rootX,
  type PlacedNode,
  type TreeLayout,
} from "../../cache/tree_layout";

const labelGap = 8;
const bendWidth = 32;
const ringGap = 3;
const maxStroke = 8;

interface TreeNodeProps {
  placed: PlacedNode;
  size: LabelSize;
  isEntry: boolean;
  onPoint: (isOn: boolean) => void;
  onFocus: (isOn: boolean) => void;
}

export function TreeNode({ placed, size, isEntry, onPoint, onFocus }: TreeNodeProps) {
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
        <rect class="reach" x={x} y={middleOf(placed) - 18} width={reachOf(placed, size)} height="36" />
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
      <Label placed={placed} size={size} />
    </>
  );
}

/**
 * Words above the line to the children, figures below it where there is room.
 *
 * They stand beside the item: its name says more than them, and in whole words.
 */
function Label({ placed, size }: { placed: PlacedNode; size: LabelSize }) {
  const { node, x, width } = placed;
  const left = x + width + labelGap;
  const numCharacters = charactersIn(reachOf(placed, size) - width - labelGap, size);
  return (
    <g
      class="label"
      aria-hidden="true"
      transform={`translate(${left} ${middleOf(placed)}) scale(${size.unit})`}
    >
      <text class="words" y={-5} data-foreign={node.text === null}>
        {node.text === null
          ? cutTo(node.tenant ?? "", numCharacters)
          : cutTurns(turnsOf(node), numCharacters).map(({ role, words }, index) => (
              <Fragment key={index}>
                {role !== "" && <tspan class="role">{role}</tspan>} {words}{" "}
              </Fragment>
            ))}
      </text>
      {size.hasFigures && (
        <text class="numbers" y="14">
          {cutTo(figuresOf(node), numCharacters)}
        </text>
      )}
    </g>
  );
}

/**
 * Return how far a node and its words go: until the lines to its children bend.
 *
 * Beside a leaf there is nothing, so that its words have the room of a column on the screen.
 */
function reachOf({ x, children }: PlacedNode, { unit, end }: LabelSize): number {
  if (children.length > 0) return columnWidth - bendWidth;
  return Math.max(columnWidth, Math.min(columnWidth * unit, end - x)) - labelGap;
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
