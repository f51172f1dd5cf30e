/** Detects a GPU. Where there is one, terminals are drawn with it, and their cells are whole device pixels wide. */

/** Names of software renderers, which emulate a GPU on the CPU. */
const SOFTWARE_RENDERER = /swiftshader|llvmpipe|softpipe|software|basic render/i;
/** The name that Chromium and WebKit report for every renderer, unless the debug extension is used. */
const MASKED_NAME = "WebKit WebGL";

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
