/**
 * Check the built page against its budget: what a first visit loads, compressed.
 *
 * Run after `npm run build`. Ends with 1 and says by how much when the budget is exceeded.
 */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const budgetBytes = { js: 60_000, css: 10_000 };
const built = new URL("../../chatserve/gateway/static/", import.meta.url);

/** Return the files of one kind that index.html asks for. */
function firstLoad(extension) {
  const html = readFileSync(new URL("index.html", built), "utf8");
  const names = html.matchAll(/(?:src|href)="\.\/([^"]+)"/g);
  return [...names].map(([, name]) => name).filter((name) => name.endsWith(`.${extension}`));
}

function gzipBytes(name) {
  return gzipSync(readFileSync(new URL(name, built))).length;
}

let isOver = false;
for (const [extension, budget] of Object.entries(budgetBytes)) {
  const files = firstLoad(extension);
  if (files.length === 0) throw new Error(`no ${extension} in ${fileURLToPath(built)}index.html`);
  const size = files.map(gzipBytes).reduce((sum, bytes) => sum + bytes, 0);
  console.log(`${extension}: ${size} of ${budget} bytes, gzip`);
  isOver ||= size > budget;
}
process.exitCode = isOver ? 1 : 0;
