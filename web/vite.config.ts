import { defineConfig } from "vitest/config";

import { lexerOnly } from "./scripts/lexer_only.mjs";
import { oneSheet } from "./scripts/one_sheet.mjs";
import { shellList } from "./scripts/shell_list.mjs";

const serviceWorker = /\/src\/(?:sw|shell_cache)\.ts$/;
const gateway = "http://127.0.0.1:8000";

export default defineConfig({
  base: "./",
  plugins: [lexerOnly(), oneSheet(), shellList()],
  // Preact's own JSX runtime; no plugin stands between the sources and the bundle.
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../chatserve/gateway/static",
    emptyOutDir: true,
    target: "es2022",
    // The content security policy allows neither inlined assets nor inlined scripts.
    assetsInlineLimit: 0,
    // The scripts that the first one imports are fetched beside it; later views need no list.
    modulePreload: {
      polyfill: false,
      resolveDependencies: (_file, scripts, { hostType }) => (hostType === "html" ? scripts : []),
    },
    rolldownOptions: {
      input: ["index.html", "src/sw.ts"],
      output: {
        // A service worker is found again under its name, and serves the folder that it lies in.
        entryFileNames: ({ name }) => (name === "sw" ? "sw.js" : "assets/[name]-[hash].js"),
        // What the page begins with in one piece, which compresses better than several.
        codeSplitting: {
          groups: [{ name: "page", tags: ["$initial"], test: (id) => !serviceWorker.test(id) }],
        },
        // The size check knows the grammars of highlighted languages by their names.
        chunkFileNames: ({ moduleIds }) =>
          moduleIds.some((id) => id.includes("highlight.js/es/languages/"))
            ? "assets/grammar-[name]-[hash].js"
            : "assets/[name]-[hash].js",
      },
    },
  },
  server: {
    // The gateway answers its own origin only, so the proxy speaks as that.
    proxy: {
      "/v1": { target: gateway, ws: true, changeOrigin: true, headers: { origin: gateway } },
    },
  },
  // Tests read the colours out of the style sheets.
  test: {
    include: ["test/**/*.test.{ts,tsx}"],
    setupFiles: ["test/later.setup.ts"],
    css: { include: /\.css\?raw$/ },
    // A slow machine may take long for what is long; a test that measures has bounds of its own.
    testTimeout: 60_000,
  },
});
