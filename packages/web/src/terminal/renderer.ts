/**
 * Chooses what renders a terminal, the DOM or a GPU, and measures its cells.
 *
 * The DOM renderer starts sooner, so it shows the first output; then the GPU takes over, if there is one. GPU
 * cells are whole device pixels wide. Until it takes over, the DOM's cells are scaled to that width, so that
 * the size is right from the start and nothing moves.
 */
import type { WebglAddon } from "@xterm/addon-webgl";
import type { Terminal } from "@xterm/xterm";
import { hasGpu } from "../session/gpu.ts";
import { loadGpu } from "./gpu.ts";
import type { Pixels } from "./letterbox.ts";

/** The tolerance for rounding, in device pixels. */
const ROUNDING = 4;

/** Renders a terminal that is open in `host`. Calls `onChange` when the size of its cells may have changed. */
export class Renderer {
  readonly #term: Terminal;
  readonly #host: HTMLElement;
  readonly #container: HTMLElement;
  readonly #onChange: () => void;
  #gpu: { dispose(): void } | undefined;
  /** Set while a GPU is going to take over: waiting for the first output, or loading the WebGL renderer. */
  #pendingGpu: "output" | "loading" | undefined;

  constructor(term: Terminal, host: HTMLElement, container: HTMLElement, onChange: () => void) {
    this.#term = term;
    this.#host = host;
    this.#container = container;
    this.#onChange = onChange;
  }

  /** Whether to use a GPU, if there is one. */
  set gpu(enabled: boolean) {
    this.#gpu?.dispose();
    this.#pendingGpu = enabled && hasGpu() ? "output" : undefined;
  }

  /** What renders now. The size of the cells depends on it. `scaled` is the DOM with cells as wide as the GPU's. */
  get mode(): "gpu" | "scaled" | "dom" {
    return this.#gpu ? "gpu" : this.#pendingGpu ? "scaled" : "dom";
  }

  /** Call this after output is on the screen: lets a GPU take over. */
  handleOutput(): void {
    if (this.#pendingGpu === "output") void this.#loadGpu();
  }

  /** Measures a cell; before a GPU takes over, with the width that the GPU's cells will have. */
  measure(): Pixels {
    const { offsetWidth = 0, offsetHeight = 0 } = this.#element ?? {};
    const width = offsetWidth / this.#term.cols;
    return { width: this.#pendingGpu ? gpuWidth(width) : width, height: offsetHeight / this.#term.rows };
  }

  /** Scales the DOM's cells to the width that the GPU's cells will have. */
  scaleCells(): void {
    const element = this.#element;
    if (!element) return;
    const width = element.offsetWidth / this.#term.cols;
    element.style.transform = this.#pendingGpu ? `scaleX(${gpuWidth(width) / width})` : "";
  }

  /** Stops using the GPU, or waiting for it. */
  dispose(): void {
    this.gpu = false;
  }

  get #element(): HTMLElement | null {
    return this.#host.querySelector<HTMLElement>(".xterm-screen");
  }

  async #loadGpu(): Promise<void> {
    this.#pendingGpu = "loading";
    const WebglAddon = await loadGpu();
    if (this.#pendingGpu !== "loading") return;
    this.#pendingGpu = undefined;
    if (WebglAddon) this.#useGpu(new WebglAddon());
    this.#onChange();
  }

  /** Renders with the GPU until its context is lost. Stays with the DOM if there is no WebGL. */
  #useGpu(addon: WebglAddon): void {
    try {
      const stop = () => {
        if (this.#gpu === undefined) return;
        this.#gpu = undefined;
        observer.disconnect();
        addon.dispose();
        this.#onChange();
      };
      const observer = new ResizeObserver((entries) => {
        if (!entries.every(hasTrueSize)) stop();
      });
      addon.onContextLoss(stop);
      this.#term.loadAddon(addon);
      this.#gpu = { dispose: stop };
      observer.observe(this.#container, { box: "device-pixel-content-box" });
    } catch {
      // No WebGL: xterm.js keeps its DOM renderer.
    }
  }
}

/** The width of the GPU's cells, given the width of the DOM's. */
function gpuWidth(width: number): number {
  return Math.floor(width * devicePixelRatio) / devicePixelRatio;
}

/**
 * Whether the browser reports an element's true size in device pixels. Emulated screens do not, and their
 * canvas stays empty.
 */
function hasTrueSize({ contentRect, devicePixelContentBoxSize: [box] = [] }: ResizeObserverEntry): boolean {
  return !box || Math.abs(box.inlineSize - contentRect.width * devicePixelRatio) <= ROUNDING;
}
