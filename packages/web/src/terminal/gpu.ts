/** Detects a GPU, and loads xterm.js' WebGL renderer when it is first needed. */
import type { WebglAddon } from "@xterm/addon-webgl";

/** Names of software renderers, which emulate a GPU on the CPU. */
const SOFTWARE_RENDERER = /swiftshader|llvmpipe|softpipe|software|basic render/i;
/** The name that Chromium and WebKit report for every renderer, unless the debug extension is used. */
const MASKED_NAME = "WebKit WebGL";
/** Milliseconds after which the renderer is switched even if the page is never idle. */
const IDLE_TIMEOUT = 2_000;

let detected: boolean | undefined;

/** Whether there is a real GPU. Software rendering is slower than the DOM, above all to start. */
export function hasGpu(): boolean {
  detected ??= detectGpu();
  return detected;
}

function detectGpu(): boolean {
  try {
    const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
    if (!gl) return false;
    let name = String(gl.getParameter(gl.RENDERER));
    const debugInfo = name === MASKED_NAME && gl.getExtension("WEBGL_debug_renderer_info");
    if (debugInfo) name = String(gl.getParameter(debugInfo.UNMASKED_RENDERER_WEBGL));
    // Release the context: browsers limit their number per page.
    gl.getExtension("WEBGL_lose_context")?.loseContext();
    return !SOFTWARE_RENDERER.test(name);
  } catch {
    return false;
  }
}

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
