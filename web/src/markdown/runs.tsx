/**
 * A long row of things in runs: where only the last of ten thousand is new, only the last run is
 * rendered again.
 */

import { Component, type ComponentChildren, type VNode } from "preact";

export const runLength = 50;

interface RunProps<Item> {
  items: readonly Item[];
  /** What it returns depends on the item alone, and has a key. */
  render: (item: Item, index: number) => VNode;
}

export function Runs<Item>({ items, render }: RunProps<Item>) {
  const runs: VNode[] = [];
  for (let start = 0; start < items.length; start += runLength) {
    const run = items.slice(start, start + runLength);
    runs.push(<Run key={start} items={run} render={render} />);
  }
  return <>{runs}</>;
}

class Run<Item> extends Component<RunProps<Item>> {
  override shouldComponentUpdate({ items }: RunProps<Item>): boolean {
    const before = this.props.items;
    return items.length !== before.length || items.some((item, index) => item !== before[index]);
  }

  override render({ items, render }: RunProps<Item>): ComponentChildren {
    return items.map(render);
  }
}
