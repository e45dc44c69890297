/** The radix tree from left to right, to be looked at, moved and read. */

import "./tree.css";

import { useSignal, type Signal } from "@preact/signals";
import { useRef } from "preact/hooks";

import { treeSummary } from "../../cache/node_words";
import { columnWidth, rootX, type PlacedNode, type TreeLayout } from "../../cache/tree_layout";
import { stepFrom } from "../../cache/tree_steps";
import { reveal, seenNodes, type Box } from "../../cache/viewport";
import { plural, t } from "../../i18n/catalogue";
import type { WireCacheWorker } from "../../wire/cache_snapshot";
import { useSize } from "../observe/use_size";
import { NodeTooltip } from "./node_tooltip";
import { TreeLegend } from "./tree_legend";
import { NodeLink, TreeNode } from "./tree_node";
import { TreeTable } from "./tree_table";
import { usePanZoom, zoomFactor, type PanZoom } from "./use_pan_zoom";

const minLabelScale = 0.55;
const around: Box = { width: columnWidth, height: 60 };

interface TreePaneProps {
  worker: WireCacheWorker;
  layout: TreeLayout;
}

export function TreePane({ worker, layout }: TreePaneProps) {
  const isEmpty = layout.nodes.length === 0;
  return (
    <section class="pane" aria-labelledby="tree-heading">
      <div class="pane-head">
        <h2 id="tree-heading">{t("cache.tree")}</h2>
        {!isEmpty && <p>{treeSummary(worker.nodes)}</p>}
        {worker.num_hidden_nodes > 0 && (
          <p>{plural("cache.numHidden", worker.num_hidden_nodes)}</p>
        )}
      </div>
      {isEmpty ? (
        <p class="pane-empty">{t("cache.empty")}</p>
      ) : (
        <>
          <TreePicture layout={layout} />
          <TreeLegend />
          <TreeTable nodes={worker.nodes} />
        </>
      )}
    </section>
  );
}

function TreePicture({ layout }: { layout: TreeLayout }) {
  const frame = useRef<HTMLDivElement>(null);
  const box = useSize(frame).value;
  const panZoom = usePanZoom(layout, box);
  const pointed = useSignal<number | null>(null);
  const focused = useSignal<number | null>(null);
  const shown = placedOf(layout, pointed.value) ?? placedOf(layout, focused.value);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const from = event.target === frame.current ? null : placedOf(layout, focused.peek());
    const to = from === null ? null : stepFrom(from, event.key, layout);
    if (to !== null) {
      panZoom.show(reveal(panZoom.view, to, box));
      focused.value = to.node.id;
      queueMicrotask(() => focusNode(frame.current, to.node.id));
    }
    const isArrowOfNode = from !== null && event.key.startsWith("Arrow");
    if (isArrowOfNode || panZoom.onKey(event.key)) event.preventDefault();
  };
  return (
    <div class="tree-frame">
      <div
        class="tree-picture"
        ref={frame}
        role="group"
        tabIndex={0}
        aria-label={t("cache.treeKeys")}
        onKeyDown={onKeyDown}
        {...panZoom.handlers}
      >
        <Tree layout={layout} box={box} panZoom={panZoom} pointed={pointed} focused={focused} />
        {shown !== null && <NodeTooltip placed={shown} view={panZoom.view} box={box} />}
      </div>
      <ZoomButtons panZoom={panZoom} />
    </div>
  );
}

interface TreeProps {
  layout: TreeLayout;
  box: Box;
  panZoom: PanZoom;
  pointed: Signal<number | null>;
  focused: Signal<number | null>;
}

function Tree({ layout, box, panZoom, pointed, focused }: TreeProps) {
  const { x, y, scale } = panZoom.view;
  const seen = seenNodes(layout, panZoom.view, box, around);
  // The one node that Tab leads to; a drawn one, so that there is one.
  const entry = seen.find(({ node }) => node.id === focused.value) ?? seen[0];
  return (
    <svg class="tree" data-labels={scale >= minLabelScale} width="100%" height="100%">
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
              isEntry={each === entry}
              onPoint={(isOn) => (pointed.value = isOn ? each.node.id : null)}
              onFocus={(isOn) => (focused.value = isOn ? each.node.id : focused.peek())}
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

function focusNode(frame: Element | null, nodeId: number): void {
  frame?.querySelector<SVGElement>(`[data-node="${nodeId}"]`)?.focus();
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
