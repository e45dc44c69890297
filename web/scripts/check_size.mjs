/**
 * Check the built page against its budgets, in bytes as they are sent: what a first visit loads, to a
 * new chat and to the address of a conversation, and what code or mathematics in an answer loads
 * after that.
 *
 * Run after `npm run build`. Ends with 1 if a budget is exceeded.
 */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";

const built = new URL("../../chatserve/gateway/static/", import.meta.url);

/** Return the files of one kind that index.html asks for, and what they import at once. */
function firstLoad(extension) {
  const html = readFileSync(new URL("index.html", built), "utf8");
  const names = [...html.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, name]) => name);
  return withImports(names.filter((name) => name.endsWith(`.${extension}`)));
}

/** Return scripts of the assets folder with all that they import before they can run. */
function withImports(names) {
  const found = new Set(names);
  for (const name of found) {
    if (!name.endsWith(".js")) continue;
    const code = readFileSync(new URL(name, built), "utf8");
    for (const [, file] of code.matchAll(/(?:\bfrom|\bimport)"\.\/([^"]+)"/g)) {
      found.add(`assets/${file}`);
    }
  }
  return [...found];
}

/** Return the scripts that are loaded later and whose names begin so. */
function chunks(name) {
  const files = readdirSync(new URL("assets/", built)).map((file) => `assets/${file}`);
  return files.filter((file) => file.startsWith(`assets/${name}-`) && file.endsWith(".js"));
}

/** Return the size of a file's compressed copy. */
function gzipBytes(name) {
  return statSync(new URL(`${name}.gz`, built)).size;
}

function largest(names) {
  return names.toSorted((one, other) => gzipBytes(other) - gzipBytes(one)).slice(0, 1);
}

// A block of code needs the highlighter and the grammar of its own language.
const highlighting = [...chunks("highlighter"), ...largest(chunks("grammar"))];

/** Return what a visit loads that begins with these views. */
function visit(...views) {
  return [...new Set([...firstLoad("js"), ...withImports(views.flatMap(chunks))])];
}

const budgets = [
  { what: "first load, new chat", files: visit("empty_state", "en.later"), bytes: 60_000 },
  { what: "first load, conversation", files: visit("markdown"), bytes: 63_000 },
  { what: "css", files: firstLoad("css"), bytes: 10_000 },
  { what: "highlight", files: highlighting, bytes: 30_000 },
  { what: "math", files: chunks("mathml"), bytes: 80_000 },
];

let isOver = false;
for (const { what, files, bytes } of budgets) {
  if (files.length === 0) throw new Error(`no ${what} in ${fileURLToPath(built)}`);
  const size = files.map(gzipBytes).reduce((sum, fileBytes) => sum + fileBytes, 0);
  console.log(`${what}: ${size} of ${bytes} bytes, gzip`);
  isOver ||= size > bytes;
}
process.exitCode = isOver ? 1 : 0;
