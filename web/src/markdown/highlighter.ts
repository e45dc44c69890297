/**
 * Code as a list of coloured pieces, by highlight.js.
 *
 * Loaded with the first closed fence that names a language; each grammar is loaded with the first
 * fence in its language. highlight.js would write HTML: its emitter is replaced by one that keeps
 * the pieces, flat, each with the one of a few kinds that a colour stands for.
 */

import hljs from "highlight.js/lib/core";
import type { Emitter, LanguageFn } from "highlight.js";

export type CodeKind =
  | "keyword"
  | "string"
  | "number"
  | "comment"
  | "title"
  | "type"
  | "name"
  | "meta"
  | "addition"
  | "deletion";

export interface CodePiece {
  readonly kind: CodeKind | null;
  readonly text: string;
}

type Grammar = () => Promise<{ default: LanguageFn }>;

const grammars = new Map<string, Grammar>([
  ["bash", () => import("highlight.js/lib/languages/bash")],
  ["c", () => import("highlight.js/lib/languages/c")],
  ["cpp", () => import("highlight.js/lib/languages/cpp")],
  ["csharp", () => import("highlight.js/lib/languages/csharp")],
  ["css", () => import("highlight.js/lib/languages/css")],
  ["diff", () => import("highlight.js/lib/languages/diff")],
  ["dockerfile", () => import("highlight.js/lib/languages/dockerfile")],
  ["go", () => import("highlight.js/lib/languages/go")],
  ["ini", () => import("highlight.js/lib/languages/ini")],
  ["java", () => import("highlight.js/lib/languages/java")],
  ["javascript", () => import("highlight.js/lib/languages/javascript")],
  ["json", () => import("highlight.js/lib/languages/json")],
  ["kotlin", () => import("highlight.js/lib/languages/kotlin")],
  ["markdown", () => import("highlight.js/lib/languages/markdown")],
  ["php", () => import("highlight.js/lib/languages/php")],
  ["python", () => import("highlight.js/lib/languages/python")],
  ["ruby", () => import("highlight.js/lib/languages/ruby")],
  ["rust", () => import("highlight.js/lib/languages/rust")],
  ["sql", () => import("highlight.js/lib/languages/sql")],
  ["swift", () => import("highlight.js/lib/languages/swift")],
  ["typescript", () => import("highlight.js/lib/languages/typescript")],
  ["xml", () => import("highlight.js/lib/languages/xml")],
  ["yaml", () => import("highlight.js/lib/languages/yaml")],
]);

const aliases = new Map<string, string>(
  Object.entries({
    bash: "sh shell zsh console shellsession",
    c: "h",
    cpp: "c++ cc cxx hpp",
    csharp: "c# cs",
    diff: "patch",
    dockerfile: "docker",
    go: "golang",
    ini: "toml cfg conf",
    javascript: "js jsx mjs cjs node",
    json: "json5 jsonc jsonl",
    kotlin: "kt kts",
    markdown: "md",
    python: "py python3 py3",
    ruby: "rb",
    rust: "rs",
    sql: "postgresql postgres mysql sqlite",
    typescript: "ts tsx mts cts",
    xml: "html xhtml svg htm vue",
    yaml: "yml",
  }).flatMap(([language, names]) => names.split(" ").map((name) => [name, language] as const)),
);

const kinds = new Map<string, CodeKind | null>(
  Object.entries({
    keyword: "keyword literal operator selector-tag template-tag",
    string: "string regexp char quote code link selector-attr",
    number: "number symbol bullet",
    comment: "comment",
    title: "title section function selector-id selector-class strong",
    type: "type class built_in selector-pseudo",
    name: "name attr attribute property variable template-variable",
    meta: "meta doctag",
    addition: "addition",
    deletion: "deletion",
  }).flatMap(([kind, scopes]) =>
    scopes.split(" ").map((scope) => [scope, kind as CodeKind] as const),
  ),
).set("subst", null);

class PieceEmitter implements Emitter {
  readonly pieces: CodePiece[] = [];
  readonly #open: (CodeKind | null)[] = [];

  addText(text: string): void {
    this.#add({ kind: this.#open.at(-1) ?? null, text });
  }

  startScope(name: string): void {
    const kind = kinds.get(name.split(".", 1)[0] ?? "");
    this.#open.push(kind === undefined ? (this.#open.at(-1) ?? null) : kind);
  }

  endScope(): void {
    this.#open.pop();
  }

  openNode(name: string): void {
    this.startScope(name);
  }

  closeNode(): void {
    this.endScope();
  }

  __addSublanguage(emitter: Emitter): void {
    if (emitter instanceof PieceEmitter) emitter.pieces.forEach((piece) => this.#add(piece));
  }

  finalize(): void {
    this.#open.length = 0;
  }

  toHTML(): string {
    return "";
  }

  #add({ kind, text }: CodePiece): void {
    const last = this.pieces.at(-1);
    if (last?.kind === kind) this.pieces[this.pieces.length - 1] = { kind, text: last.text + text };
    else if (text !== "") this.pieces.push({ kind, text });
  }
}

const engine = hljs.newInstance();
engine.configure({ __emitter: PieceEmitter });

/** Return the grammar's name for a language as models write it, or null if there is none. */
export function grammarOf(language: string): string | null {
  const name = aliases.get(language) ?? language;
  return grammars.has(name) ? name : null;
}

/** Load a grammar unless it is there; throws where it cannot be had. */
export async function loadGrammar(name: string): Promise<void> {
  const load = grammars.get(name);
  if (load === undefined || engine.getLanguage(name) !== undefined) return;
  engine.registerLanguage(name, (await load()).default);
}

/** Return the pieces of a code in a loaded grammar; null where they would not be the same text. */
export function highlight(code: string, grammar: string): readonly CodePiece[] | null {
  const { _emitter: emitter } = engine.highlight(code, { language: grammar, ignoreIllegals: true });
  if (!(emitter instanceof PieceEmitter)) return null;
  return emitter.pieces.map(({ text }) => text).join("") === code ? emitter.pieces : null;
}
