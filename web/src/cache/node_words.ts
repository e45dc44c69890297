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

export interface Turn {
  /** Who speaks, in a word; empty where it is not told. */
  role: string;
  words: string;
}

/** Return the first words of a node as somebody's, one after the other; none if not readable. */
export function turnsOf({ text, roles }: WireCacheNode): Turn[] {
  if (text === null) return [];
  const starts = [{ role: null, at: 0 }, ...roles];
  const turns = starts.map(({ role, at }, index) => ({
    role: role === null ? "" : t(`cache.role.${role}`),
    words: text.slice(at, starts[index + 1]?.at).trim(),
  }));
  return turns.filter(({ role, words }) => `${role}${words}` !== "");
}

/** Return the words that a node begins with, or whose it is where they may not be read. */
export function headOf(node: WireCacheNode): string {
  if (node.text === null) return ownerOf(node);
  return turnsOf(node).map(inWords).join(" ");
}

export function figuresOf(node: WireCacheNode): string {
  const figures = [plural("cache.numTokens", node.num_tokens)];
  if (node.alike !== null) figures.push(plural("cache.numAlike", node.alike.num_tokens));
  if (node.num_sharers > 0) figures.push(plural("cache.numSharers", node.num_sharers));
  return figures.join(" · ");
}

/** Return all that is told of a node, a line each. */
export function linesOf(node: WireCacheNode): string[] {
  const tokens = plural("cache.numTokens", node.num_tokens);
  const lines = [`${tokens}, ${plural("cache.numPages", node.num_pages)}`];
  if (node.num_hits !== null) lines.push(plural("cache.numHits", node.num_hits));
  if (node.idle_s !== null) lines.push(t("cache.lastUse", { age: formatAge(node.idle_s) }));
  if (node.num_sharers > 0) lines.push(plural("cache.sharedNow", node.num_sharers));
  if (node.alike !== null) lines.push(plural("cache.alike", node.alike.num_tokens));
  lines.push(node.pinned ? t("cache.pinnedScope", { scope: ownerOf(node) }) : ownerOf(node));
  return lines;
}

/** Return as much of the turns as has room in so many Latin characters' width. */
export function cutTurns(turns: readonly Turn[], width: number): Turn[] {
  const shown: Turn[] = [];
  let left = width;
  for (const { role, words } of turns) {
    if (left <= role.length) break;
    const cut = cutTo(words, left - role.length - 1);
    shown.push({ role, words: cut });
    left -= widthOf(role) + widthOf(cut) + 2;
  }
  return shown;
}

/** Return a text cut to so many Latin characters' width, with an ellipsis where it was cut. */
export function cutTo(text: string, width: number): string {
  let used = 0;
  let kept = "";
  for (const character of text.replace(/\s+/g, " ").trim()) {
    used += widthOf(character);
    if (used > width) return `${kept.trimEnd()}…`;
    kept += character;
  }
  return kept;
}

function inWords({ role, words }: Turn): string {
  return role === "" ? words : t("cache.turn", { role, words });
}

function widthOf(text: string): number {
  return [...text].reduce((sum, each) => sum + ((each.codePointAt(0) ?? 0) < firstWide ? 1 : 2), 0);
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
