/** What is said of a node of the tree: on its label, in its tooltip, to a screen reader. */

import { formatAge } from "../i18n/age";
import { formatCount, plural, t } from "../i18n/catalogue";
import type { NodeScope, WireCacheNode } from "../wire/cache_snapshot";

/** The first character that is drawn twice as wide as a Latin one. */
const firstWide = 0x1100;

const scopeKeys = {
  public: "cache.scope.public",
  mine: "cache.scope.mine",
  other: "cache.scope.foreign",
} as const;

export function scopeName(scope: NodeScope): string {
  return t(scopeKeys[scope]);
}

/** Return whose a node is, by name where the viewer may know it. */
export function ownerOf({ scope, tenant }: WireCacheNode): string {
  return tenant ?? scopeName(scope);
}

/** Return the words that a node begins with, or whose it is where they may not be read. */
export function headOf(node: WireCacheNode): string {
  return node.text ?? ownerOf(node);
}

export function figuresOf(node: WireCacheNode): string {
  const tokens = plural("cache.numTokens", node.num_tokens);
  if (node.num_sharers === 0) return tokens;
  return `${tokens} · ${plural("cache.numSharers", node.num_sharers)}`;
}

/** Return all that is told of a node, a line each. */
export function linesOf(node: WireCacheNode): string[] {
  const tokens = plural("cache.numTokens", node.num_tokens);
  const lines = [`${tokens}, ${plural("cache.numPages", node.num_pages)}`];
  if (node.num_hits !== null) lines.push(plural("cache.numHits", node.num_hits));
  if (node.idle_s !== null) lines.push(t("cache.lastUse", { age: formatAge(node.idle_s) }));
  if (node.num_sharers > 0) lines.push(plural("cache.sharedNow", node.num_sharers));
  lines.push(node.pinned ? t("cache.pinnedScope", { scope: ownerOf(node) }) : ownerOf(node));
  return lines;
}

/** Return a text cut to so many Latin characters' width, with an ellipsis where it was cut. */
export function cutTo(text: string, width: number): string {
  let used = 0;
  let kept = "";
  for (const character of text.replace(/\s+/g, " ").trim()) {
    used += (character.codePointAt(0) ?? 0) < firstWide ? 1 : 2;
    if (used > width) return `${kept.trimEnd()}…`;
    kept += character;
  }
  return kept;
}

/** Return the number of nodes, tokens and pages in a sentence. */
export function treeSummary(nodes: readonly WireCacheNode[]): string {
  const sum = (count: (node: WireCacheNode) => number) =>
    formatCount(nodes.reduce((total, node) => total + count(node), 0));
  return plural("cache.treeSummary", nodes.length, {
    tokens: sum(({ num_tokens }) => num_tokens),
    pages: sum(({ num_pages }) => num_pages),
  });
}
