/** The monospace font that comes with the app. It is fetched only if a setting chooses it. */
import bold from "@fontsource/jetbrains-mono/files/jetbrains-mono-latin-700-normal.woff2?url";
import regular from "@fontsource/jetbrains-mono/files/jetbrains-mono-latin-400-normal.woff2?url";
import { showNotice } from "../state/notices.svelte.ts";

/** The name of the font in the page, which differs from that of an installed copy. */
const FAMILY = "Bowline JetBrains Mono";

let loaded = $state(false);
let loading = false;

/**
 * The font family of the bundled font; empty, the default, until it is loaded. xterm.js measures a font when it is set, so it
 * must be there before.
 */
export function bundledFont(): string {
  if (!loaded && !loading) void load();
  return loaded ? `"${FAMILY}", monospace` : "";
}

async function load(): Promise<void> {
  loading = true;
  try {
    const faces = [
      new FontFace(FAMILY, `url("${regular}")`, { weight: "400" }),
      new FontFace(FAMILY, `url("${bold}")`, { weight: "700" }),
    ];
    for (const face of await Promise.all(faces.map((face) => face.load()))) document.fonts.add(face);
    loaded = true;
  } catch {
    showNotice("The font could not be loaded", { body: "Reload the page once you are connected." });
  }
}
