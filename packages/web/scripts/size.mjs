/** Says how large the built app is, by file, as it travels (gzip). Run `npm run build` first. */
import { readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const dist = new URL("../dist/", import.meta.url);
const files = readdirSync(new URL("assets/", dist)).map((name) => `assets/${name}`);
let all = 0;
for (const file of ["index.html", ...files]) {
  const bytes = readFileSync(new URL(file, dist));
  const small = gzipSync(bytes).length;
  all += small;
  console.log(`${file.padEnd(44)} ${String(bytes.length).padStart(8)} B  ${String(small).padStart(8)} B gzip`);
}
console.log(`${"all of it".padEnd(44)} ${"".padStart(8)}    ${String(all).padStart(8)} B gzip`);
