/**
 * How a terminal is drawn, and how large its cells are.
 *
 * The DOM draws the first output, for it begins sooner; then a GPU takes over, where there is one. Its cells are whole device
 * pixels wide, so until then the DOM's are pressed to the same width: the size is right from the start, and nothing moves.
 */
import type { WebglAddon } from "@xterm/addon-webgl";
import type { Terminal } from "@xterm/xterm";
import { hasGpu, loadGpu } from "./gpu.ts";
import type { Pixels } from "./letterbox.ts";

/** How far a size in device pixels may be off by rounding. */
const ROUNDING = 4;

/** The drawing of one terminal, which is open in `host`. Calls `changed` when its cells may have another size. */
export class Drawing {
  readonly #term: Terminal;
  readonly #host: HTMLElement;
  readonly #place: HTMLElement;
  readonly #changed: () => void;
  #gpu: { dispose(): void } | undefined;
  /** A GPU is going to draw: its part of the app is fetched with the first output, or is being fetched. */
  #awaitsGpu: "output" | "fetch" | undefined;

  constructor(term: Terminal, host: HTMLElement, place: HTMLElement, changed: () => void) {
    this.#term = term;
    this.#host = host;
    this.#place = place;
    this.#changed = changed;
  }

  /** Whether a GPU is to draw, where there is one. */
  set gpu(wanted: boolean) {
    this.#gpu?.dispose();
    this.#awaitsGpu = wanted && hasGpu() ? "output" : undefined;
  }

  /** What draws: the size of the cells depends on it. */
  get by(): "gpu" | "pressed" | "dom" {
    return this.#gpu ? "gpu" : this.#awaitsGpu ? "pressed" : "dom";
  }

  /** Output is on the screen: a GPU may take over. */
  handleOutput(): void {
    if (this.#awaitsGpu === "output") void this.#fetch();
  }

  /** A cell, as wide as it is drawn or is going to be. */
  measure(): Pixels {
    const { offsetWidth = 0, offsetHeight = 0 } = this.#element ?? {};
    const width = offsetWidth / this.#term.cols;
    return { width: this.#awaitsGpu ? gpuWidth(width) : width, height: offsetHeight / this.#term.rows };
  }

  /** Draws what the DOM draws in the cells that the GPU is going to have. */
  press(): void {
    const element = this.#element;
    if (!element) return;
    const width = element.offsetWidth / this.#term.cols;
    element.style.transform = this.#awaitsGpu ? `scaleX(${gpuWidth(width) / width})` : "";
  }

  /** Stops drawing by GPU, also if it has not begun. */
  dispose(): void {
    this.gpu = false;
  }

  get #element(): HTMLElement | null {
    return this.#host.querySelector<HTMLElement>(".xterm-screen");
  }

  async #fetch(): Promise<void> {
    this.#awaitsGpu = "fetch";
    const WebglAddon = await loadGpu();
    if (this.#awaitsGpu !== "fetch") return;
    this.#awaitsGpu = undefined;
    if (WebglAddon) this.#use(new WebglAddon());
    this.#changed();
  }

  /** Draws by GPU from now on, until its context is lost or there is none. */
  #use(addon: WebglAddon): void {
    try {
      const stop = () => {
        if (this.#gpu === undefined) return;
        this.#gpu = undefined;
        probe.disconnect();
        addon.dispose();
        this.#changed();
      };
      const probe = new ResizeObserver((entries) => {
        if (!entries.every(isSharp)) stop();
      });
      addon.onContextLoss(stop);
      this.#term.loadAddon(addon);
      this.#gpu = { dispose: stop };
      probe.observe(this.#place, { box: "device-pixel-content-box" });
    } catch {
      // No WebGL here: xterm.js draws by the DOM.
    }
  }
}

/** How wide the GPU's cells are where the DOM's are this wide. */
function gpuWidth(width: number): number {
  return Math.floor(width * devicePixelRatio) / devicePixelRatio;
}

/** Whether the browser tells an element's true size in device pixels. Emulated screens do not, and show nothing by GPU then. */
function isSharp({ contentRect, devicePixelContentBoxSize: [box] = [] }: ResizeObserverEntry): boolean {
  return !box || Math.abs(box.inlineSize - contentRect.width * devicePixelRatio) <= ROUNDING;
}
