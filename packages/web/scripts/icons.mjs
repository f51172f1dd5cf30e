/** Renders public/icon.svg to the PNG icons with Chromium. Run it after changing the drawing, and commit the icons. */
import { readFileSync, writeFileSync } from "node:fs";
import { chromium } from "playwright-core";

const folder = new URL("../public/", import.meta.url);
const svg = readFileSync(new URL("icon.svg", folder), "utf8");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage();
// Systems crop these icons themselves, so their background has no rounded corners.
const icons = [
  [180, "icon-180.png", true],
  [192, "icon-192.png", false],
  [512, "icon-512.png", false],
  [512, "icon-maskable-512.png", true],
];
for (const [size, name, square] of icons) {
  const drawn = square ? svg.replace('rx="14"', 'rx="0"') : svg;
  await page.setViewportSize({ width: size, height: size });
  await page.setContent(`<style>body{margin:0}svg{display:block;width:${size}px;height:${size}px}</style>${drawn}`);
  writeFileSync(new URL(name, folder), await page.screenshot({ omitBackground: true }));
}
await browser.close();
