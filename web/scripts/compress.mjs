/**
 * Put a compressed copy next to each built file, for the gateway to serve as it is.
 *
 * Run after `vite build`, which empties the folder. Equal files give equal copies; a copy that is no
 * smaller is not kept.
 */

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";

import { gzipAsync } from "@gfx/zopfli";

const built = fileURLToPath(new URL("../../chatserve/gateway/static/", import.meta.url));
const compressible = /\.(?:html|js|css|svg|json|webmanifest|txt)$/;

function brotli(content) {
  return brotliCompressSync(content, {
    params: {
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
      [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
      [constants.BROTLI_PARAM_SIZE_HINT]: content.length,
    },
  });
}

/** Compressed once, sent to everybody: Zopfli's gzip is a thirtieth smaller than zlib's best. */
function gzip(content) {
  return gzipAsync(content, { numiterations: 15 });
}

for (const entry of readdirSync(built, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !compressible.test(entry.name)) continue;
  const file = join(entry.parentPath ?? entry.path, entry.name);
  const content = readFileSync(file);
  for (const [suffix, compress] of [[".br", brotli], [".gz", gzip]]) {
    const compressed = await compress(content);
    if (compressed.length < content.length) writeFileSync(file + suffix, compressed);
  }
}
