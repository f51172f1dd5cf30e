/** Drawing by GPU: a part of the app that is fetched beside the terminal, so that the first layout is already the final one. */
import type { WebglAddon } from "@xterm/addon-webgl";

let loaded: typeof WebglAddon | undefined;

/** Fetches it. A terminal without it draws by the DOM. */
export async function loadGpu(): Promise<void> {
  try {
    loaded ??= (await import("@xterm/addon-webgl")).WebglAddon;
  } catch {
    // The gateway is away: the next terminal asks again.
  }
}

/** It, if it is here. */
export function gpuAddon(): typeof WebglAddon | undefined {
  return loaded;
}
