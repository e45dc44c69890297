/**
 * Tell the service worker which files the build consists of, and under which version to keep them.
 *
 * The names contain a hash of their content, so the version changes with any of them.
 */

import { createHash } from "node:crypto";

const worker = "sw.js";
const placeholder = "__SHELL__";
const isKept = /\.(?:js|css)$/;

/** The build's plugin. */
export function shellList() {
  return {
    name: "shell-list",
    apply: "build",
    generateBundle(_options, bundle) {
      const files = Object.keys(bundle).filter((name) => name !== worker && isKept.test(name));
      const list = ["./", "favicon.svg", ...files.sort()];
      const version = createHash("sha256").update(list.join()).digest("hex").slice(0, 16);
      const { code } = bundle[worker];
      if (!code.includes(placeholder)) throw new Error(`${worker} has no ${placeholder}`);
      bundle[worker].code = code.replace(placeholder, JSON.stringify({ version, list }));
    },
  };
}
