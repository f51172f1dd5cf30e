/** Runs the browser tests: one gateway, one Chromium, one test at a time. `make browser-test` builds what they need. */
import { defineConfig } from "vitest/config";

export default defineConfig({
  resolve: { conditions: ["source"] },
  ssr: { resolve: { conditions: ["source"] } },
  test: {
    include: ["tests/browser/*.test.ts"],
    globalSetup: "tests/browser/parts/setup.ts",
    fileParallelism: false,
    // Longer than any test takes on a busy machine.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    teardownTimeout: 30_000,
  },
});
