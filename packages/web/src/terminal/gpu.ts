/** Loads xterm.js' WebGL renderer when it is first needed. */
import type { WebglAddon } from "@xterm/addon-webgl";

/** Milliseconds after which the renderer is switched even if the page is never idle. */
const IDLE_TIMEOUT = 2_000;

/**
 * Loads the WebGL renderer after the next frame, and resolves when the page is idle; undefined if it cannot
 * be loaded.
 */
export async function loadGpu(): Promise<typeof WebglAddon | undefined> {
  try {
    await new Promise(requestAnimationFrame);
    const { WebglAddon } = await import("@xterm/addon-webgl");
    // Switch between two frames, so that the terminal is redrawn before an empty one is visible.
    await new Promise<void>((idle) => {
      if ("requestIdleCallback" in window) requestIdleCallback(() => idle(), { timeout: IDLE_TIMEOUT });
      else setTimeout(idle);
    });
    return WebglAddon;
  } catch {
    // The gateway is unreachable: keep the DOM renderer.
    return undefined;
  }
}
