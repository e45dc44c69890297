/** The radix tree as a picture: moved by pointer and keys, walked through by keys. */

import { useSignal, type Signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

import { labelSizeAt } from "../../cache/label_size";
import {
  columnWidth,
  rootX,
  type PlacedNode,
  type TreeLayout,
} from "../../cache/tree_layout";
import { stepFrom } from "../../cache/tree_steps";
import { reveal, seenNodes, type Box } from "../../cache/viewport";
import { t } from "../../i18n/catalogue";
import { useSize } from "../observe/use_size";
import { NodeTooltip } from "./node_tooltip";
import { NodeLink, TreeNode } from "./tree_node";
import { usePanZoom, zoomFactor, type PanZoom } from "./use_pan_zoom";

const around: Box = { width: columnWidth, height: 60 };

export function TreePicture({ layout }: { layout: TreeLayout }) {
  const frame = useRef<HTMLDivElement>(null);
  const box = useSize(frame).value;
  const panZoom = usePanZoom(layout, box);
  const looks: Looks = {
    pointed: useSignal<number | null>(null),
    focused: useSignal<number | null>(null),
    entry: useSignal<number | null>(null),
  };
  const shown = placedOf(layout, looks.pointed.value) ?? placedOf(layout, looks.focused.value);
  const goTo = useFocusOnceDrawn(frame);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const from = placedOf(layout, looks.focused.peek());
    const to = from === null ? null : stepFrom(from, event.key, layout);
    if (to !== null) {
      panZoom.show(reveal(panZoom.view, to, box));
      goTo(to.node.id);
    }
    if (event.key === "Escape" && shown !== null) {
      // This Escape puts the tooltip away; it does not stop an answer.
      event.stopPropagation();
      looks.pointed.value = looks.focused.value = null;
    }
    const isArrowOfNode = from !== null && event.key.startsWith("Arrow");
    if (isArrowOfNode || panZoom.onKey(event.key)) event.preventDefault();
  };
  return (
    <>
      <div class="tree-tools">
        <p>{t("cache.treeHint")}</p>
        <ZoomButtons panZoom={panZoom} />
      </div>
      <div
        class="tree-picture"
        ref={frame}
        role="group"
        tabIndex={0}
        aria-label={t("cache.treeKeys")}
        onKeyDown={onKeyDown}
        {...panZoom.handlers}
      >
        <Tree layout={layout} box={box} panZoom={panZoom} looks={looks} />
        {shown !== null && <NodeTooltip placed={shown} view={panZoom.view} box={box} />}
      </div>
    </>
  );
}

/** Ids of the nodes under the pointer and the focus, and of the one that Tab leads to. */
interface Looks {
  pointed: Signal<number | null>;
  focused: Signal<number | null>;
  entry: Signal<number | null>;
}

/** Return a function that gives a node the focus as soon as it is drawn. */
function useFocusOnceDrawn(frame: { readonly current: Element | null }): (nodeId: number) => void {
  const goal = useRef<number | null>(null);
  useLayoutEffect(() => {
    if (goal.current === null) return;
    frame.current?.querySelector<SVGElement>(`[data-node="${goal.current}"]`)?.focus();
    goal.current = null;
  });
  return (nodeId) => (goal.current = nodeId);
}

interface TreeProps {
  layout: TreeLayout;
  box: Box;
  panZoom: PanZoom;
  looks: Looks;
}

function Tree({ layout, box, panZoom, looks }: TreeProps) {
  const { x, y, scale } = panZoom.view;
  const size = labelSizeAt(scale, box.width);
  const seen = seenNodes(layout, panZoom.view, box, around);
  // Tab leads to a node that is drawn, so that it leads to one at all.
  const entry = seen.find(({ node }) => node.id === looks.entry.value) ?? seen[0];
  const onFocus = (nodeId: number | null) => {
    looks.focused.value = nodeId;
    if (nodeId !== null) looks.entry.value = nodeId;
  };
  return (
    <svg class="tree" width="100%" height="100%">
      <g transform={`translate(${x} ${y}) scale(${scale})`}>
        <g aria-hidden="true">
          <circle class="root" cx={rootX} cy={layout.height / 2} r="4" />
          {linked(seen).map((each) => (
            <NodeLink key={each.node.id} placed={each} layout={layout} />
          ))}
        </g>
        <g role="tree" aria-label={t("cache.tree")}>
          {seen.map((each) => (
            <TreeNode
              key={each.node.id}
              placed={each}
              size={size}
              isEntry={each === entry}
              onPoint={(isOn) => (looks.pointed.value = isOn ? each.node.id : null)}
              onFocus={(isOn) => onFocus(isOn ? each.node.id : null)}
            />
          ))}
        </g>
      </g>
    </svg>
  );
}

/** A line is drawn where either of its ends is seen. */
function linked(seen: readonly PlacedNode[]): PlacedNode[] {
  return [...new Set(seen.flatMap((each) => [each, ...each.children]))];
}

function placedOf(layout: TreeLayout, nodeId: number | null): PlacedNode | null {
  return layout.nodes.find(({ node }) => node.id === nodeId) ?? null;
}

function ZoomButtons({ panZoom }: { panZoom: PanZoom }) {
  return (
    <div class="zoom-buttons" role="group" aria-label={t("cache.zoom")}>
      <button
        type="button"
        class="outlined"
        aria-label={t("cache.zoomOut")}
        title={t("cache.zoomOutHint")}
        onClick={() => panZoom.zoom(1 / zoomFactor)}
      >
        −
      </button>
      <button
        type="button"
        class="outlined"
        aria-label={t("cache.zoomIn")}
        title={t("cache.zoomInHint")}
        onClick={() => panZoom.zoom(zoomFactor)}
      >
        +
      </button>
      <button
        type="button"
        class="outlined"
        title={t("cache.zoomFitHint")}
        onClick={() => panZoom.fitAgain()}
      >
        {t("cache.zoomFit")}
      </button>
    </div>
  );
}
