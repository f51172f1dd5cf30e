/** Prints the size of the client in a page: bundled and minified, and gzipped. */
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const bundle = async (contents) => {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: new URL("../src", import.meta.url).pathname },
    bundle: true,
    minify: true,
    format: "esm",
    write: false,
  });
  return outputFiles[0].contents;
};

const parts = {
  "everything, for a page": 'export * from "./index.ts"; export * from "./browser/index.ts";',
  "the board and conversations":
    'export { AgentConnection, Api, EventsConnection } from "./index.ts"; export { browserEnvironment } from "./browser/index.ts";',
  "a terminal alone":
    'export { TerminalConnection } from "./index.ts"; export { browserEnvironment } from "./browser/index.ts";',
};
for (const [name, contents] of Object.entries(parts)) {
  const bytes = await bundle(contents);
  console.log(`${name}: ${bytes.length} bytes minified, ${gzipSync(bytes, { level: 9 }).length} gzipped`);
}
