/** Measures this window and the font of terminals, for the size of a new session. */
import type { Size } from "@bowline/client";
import { settings } from "../state/device.svelte.ts";
import { page } from "../state/page.svelte.ts";
import { hasGpu } from "./gpu.ts";
import { type Glyph, type Pixels, terminalSize } from "./size.ts";

/** Monospaced fonts that come with operating systems. */
export const TERMINAL_FONTS =
  'ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';

/** Estimates the size of a terminal in this window; undefined where the browser cannot measure a font. */
export function estimateSize(window: Pixels): Size | undefined {
  const glyph = measureGlyph(settings.fontFamily || TERMINAL_FONTS, settings.fontSize);
  if (!glyph) return undefined;
  const keyRow = settings.keyRow === "always" || (settings.keyRow === "auto" && page.touch);
  const gpu = settings.gpu && hasGpu();
  return terminalSize({ window, narrow: page.narrow, keyRow, ratio: devicePixelRatio, gpu }, glyph);
}

/** The window without the insets of the device. Its height includes what an on-screen keyboard covers where the browser says so. */
export function windowPixels(): Pixels {
  const probe = document.createElement("div");
  probe.style.padding = ["top", "right", "bottom", "left"].map((side) => `env(safe-area-inset-${side})`).join(" ");
  probe.className = "offscreen";
  document.body.append(probe);
  const { paddingTop, paddingRight, paddingBottom, paddingLeft } = getComputedStyle(probe);
  const [top, right, bottom, left] = [paddingTop, paddingRight, paddingBottom, paddingLeft].map(parseFloat);
  probe.remove();
  return {
    width: window.innerWidth - (left || 0) - (right || 0),
    height: window.innerHeight - (top || 0) - (bottom || 0),
  };
}

/** Measures as xterm.js does. */
function measureGlyph(family: string, size: number): Glyph | undefined {
  try {
    const context = new OffscreenCanvas(1, 1).getContext("2d");
    if (!context) return undefined;
    context.font = `${size}px ${family}`;
    const { width, fontBoundingBoxAscent, fontBoundingBoxDescent } = context.measureText("W");
    const height = fontBoundingBoxAscent + fontBoundingBoxDescent;
    return width > 0 && height > 0 ? { width, height } : undefined;
  } catch {
    // Older browsers have no such canvas.
    return undefined;
  }
}
