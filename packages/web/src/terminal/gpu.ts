/** Drawing by GPU: a part of the app that is fetched once a terminal shows something, where there is a GPU to draw. */
import type { WebglAddon } from "@xterm/addon-webgl";

/** What processors call themselves when they play a GPU. */
const PLAYED = /swiftshader|llvmpipe|softpipe|software|basic render/i;
/** What Chromium and WebKit call every GPU, until they are asked more exactly. */
const ANY = "WebKit WebGL";
/** Milliseconds after which it begins, on a page that is never idle. */
const BUSY = 2_000;

let present: boolean | undefined;

/** Whether a GPU draws here. One that the processor plays is slower than the DOM, above all to begin. */
export function hasGpu(): boolean {
  present ??= looksForGpu();
  return present;
}

function looksForGpu(): boolean {
  try {
    const gl = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
    if (!gl) return false;
    let name = String(gl.getParameter(gl.RENDERER));
    const exact = name === ANY && gl.getExtension("WEBGL_debug_renderer_info");
    if (exact) name = String(gl.getParameter(exact.UNMASKED_RENDERER_WEBGL));
    // Pages have few contexts.
    gl.getExtension("WEBGL_lose_context")?.loseContext();
    return !PLAYED.test(name);
  } catch {
    return false;
  }
}

/** Fetches it, after the frame that is due and when the page has nothing better to do. Nothing when it cannot be had now. */
export async function loadGpu(): Promise<typeof WebglAddon | undefined> {
  try {
    await new Promise(requestAnimationFrame);
    const { WebglAddon } = await import("@xterm/addon-webgl");
    // Between two frames: what is taken away is drawn anew before anybody sees the gap.
    await new Promise<void>((idle) => {
      if ("requestIdleCallback" in window) requestIdleCallback(() => idle(), { timeout: BUSY });
      else setTimeout(idle);
    });
    return WebglAddon;
  } catch {
    // The gateway is away: the DOM goes on drawing.
    return undefined;
  }
}
