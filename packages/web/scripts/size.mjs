/** Prints the size of each built file, plain and compressed with gzip. Run `npm run build` first. */
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url);
const files = readdirSync(new URL("assets/", dist)).map((name) => `assets/${name}`);
let total = 0;
for (const file of ["index.html", ...files]) {
  const bytes = readFileSync(new URL(file, dist));
  const compressed = gzipSync(bytes).length;
  total += compressed;
  console.log(`${file.padEnd(44)} ${String(bytes.length).padStart(8)} B  ${String(compressed).padStart(8)} B gzip`);
}
console.log(`${"total".padEnd(44)} ${"".padStart(8)}    ${String(total).padStart(8)} B gzip`);
