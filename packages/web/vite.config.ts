/**
 * Builds the app with relative URLs, so that it works under any sub-path, and a service worker that lists its
 * files.
 */
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** The gateway that `npm run dev` proxies API requests to. */
const gateway = process.env["BOWLINE_URL"] ?? "http://127.0.0.1:7433";

/** Writes into the service worker the names of the built files without fonts, which few devices use, and a version that changes when one of them does. */
function workerFiles(): Plugin {
  return {
    name: "bowline-worker-files",
    apply: "build",
    generateBundle(_, bundle) {
      const files = Object.keys(bundle)
        .filter((name) => name.startsWith("assets/") && !name.endsWith(".woff2"))
        .sort();
      const worker = bundle["sw.js"];
      if (worker?.type !== "chunk") throw new Error("the service worker was not built");
      const version = createHash("sha256").update(files.join("\n")).update(worker.code).digest("hex").slice(0, 12);
      worker.code = worker.code.replace("__FILES__", JSON.stringify(files)).replace("__VERSION__", version);
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [svelte(), workerFiles()],
  resolve: {
    conditions: ["source", "module", "browser", "development|production"],
    // For browsers, this package lets the page's own parser decode entities, which trusted types forbid.
    alias: {
      "decode-named-character-reference": fileURLToPath(import.meta.resolve("decode-named-character-reference")),
    },
  },
  ssr: { resolve: { conditions: ["source"] } },
  build: {
    target: ["chrome111", "firefox113", "safari16.4"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rollupOptions: {
      input: { index: "index.html", sw: "src/worker.ts" },
      output: { entryFileNames: (chunk) => (chunk.name === "sw" ? "sw.js" : "assets/[name]-[hash].js") },
    },
  },
  server: { proxy: { "/v1": { target: gateway, ws: true, changeOrigin: false } } },
  // Longer than any test takes on a busy machine.
  test: { include: ["tests/*.test.ts"], testTimeout: 60_000 },
});
