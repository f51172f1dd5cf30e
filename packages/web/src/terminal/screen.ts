/**
 * A terminal on the page: an xterm.js instance that applies output and resizes in order.
 *
 * xterm.js applies `resize()` before queued `write()`s, so a resize is queued here until everything before it
 * is written. A whole snapshot is written in one piece, including the reset, so that no frame shows an empty
 * terminal.
 */
import type { Size } from "@bowline/client";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { type ITheme, Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { type ReadText, readText } from "./buffer_text.ts";
import { fits, fontFor, type Pixels, sizeFor, smaller } from "./letterbox.ts";
import { type HoveredLink, openLink, opensLink } from "./links.ts";
import { type MuteHooks, mute } from "./mute.ts";
import { type ClipboardRequest, parseOsc52 } from "./osc52.ts";
import { Renderer } from "./renderer.ts";
import { redirectStyles } from "./styles.ts";
import { sessionWidths } from "./widths.ts";

/** Monospaced fonts that come with operating systems. */
const FONTS =
  'ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';
/** The width of the scroll bar, right of the last column, in CSS pixels. */
const SCROLL_BAR = 12;
/**
 * Aborts an unfinished sequence and resets the terminal. xterm.js hides the cursor until the terminal has had
 * the focus or a program has left the alternate screen. So this leaves the alternate screen, which makes
 * phones show the cursor before the first tap.
 */
const RESET = new TextEncoder().encode("\x18\x1bc\x1b[?47l");
/** How many lines of the scrollback are compared with the log. */
const FIRST_LINES = 5;
/** Mouse and focus reports of xterm.js. */
const REPORT = /^\x1b\[(?:<|M|[IO]$)/;
/** Hides the cursor, until a program or a reset shows it. */
const HIDE_CURSOR = new TextEncoder().encode("\x1b[?25l");
const MAC = /Mac|iPhone|iPad/.test(navigator.platform);

export interface Appearance {
  readonly theme: ITheme;
  readonly fontSize: number;
  readonly fontFamily: string;
  readonly scrollback: number;
  readonly cursorBlink: boolean;
  readonly screenReader: boolean;
  readonly gpu: boolean;
}

/** Where the reader of a terminal is. */
export interface Scroll {
  /** Whether newer lines are below the screen. */
  readonly up: boolean;
  /** Whether it shows the oldest line of the scrollback. */
  readonly top: boolean;
}

export interface ScreenEvents {
  /** The user typed or pasted, or used the mouse; `typed` tells which. */
  onInput(data: string, typed: boolean): void;
  /** Mouse reports that are not text. */
  onBinaryInput(data: Uint8Array): void;
  /** The window has room for a terminal of this size, at the font size of the settings. */
  onWindowSize(size: Size): void;
  /** The program sent an OSC 52 sequence. */
  onClipboard(request: ClipboardRequest): void;
  /** The pointer moved over a link, or away from it. */
  onLink(link: HoveredLink | undefined): void;
  onScroll(scroll: Scroll): void;
  /** The terminal was laid out with this size. */
  onLayout(size: Size): void;
}

type Operation =
  | { readonly kind: "write"; readonly bytes: Uint8Array; readonly done: () => void }
  | { readonly kind: "resize"; readonly size: Size };

export class Screen {
  readonly term: Terminal;
  readonly #container: HTMLElement;
  readonly #host: HTMLElement;
  readonly #events: ScreenEvents;
  readonly #mute: MuteHooks;
  readonly #renderer: Renderer;
  readonly #observer: ResizeObserver;
  #appearance: Appearance;
  /** Queued behind a resize. */
  #operations: Operation[] = [];
  /** Writes that xterm.js has not finished. */
  #pendingWrites = 0;
  #snapshot: { size: Size; whole: boolean; parts: Uint8Array[] } | undefined;
  /**
   * Whether the session has sent its size. Until then the terminal has the window's size, which is usually
   * the same.
   */
  #sized = false;
  /** Whether another viewer sets the size. */
  #framed = false;
  /** The cell at the font size of the settings, until the font or the renderer changes. */
  #cell: { readonly key: string; readonly cell: Pixels } | undefined;
  #window: Size | undefined;
  #disposed = false;
  #frame = 0;
  /** Whether input results from a wheel event. */
  #wheeling = false;
  #covered = 0;
  /** How far the terminal is moved up, in CSS pixels. */
  #raised = 0;
  #scroll: Scroll = { up: false, top: false };
  /** The type of the pointer that was last pressed. */
  #pointer = "";

  constructor(container: HTMLElement, appearance: Appearance, events: ScreenEvents) {
    this.#container = container;
    this.#appearance = appearance;
    this.#events = events;
    this.#host = document.createElement("div");
    this.#host.className = "screen-host";
    container.append(this.#host);
    redirectStylesOnce();
    const links = {
      activate: (event: MouseEvent, url: string) => {
        if (opensLink(event, this.#pointer, MAC)) openLink(url);
      },
      hover: ({ clientX: x, clientY: y }: MouseEvent, url: string) => events.onLink({ url, x, y }),
      leave: () => events.onLink(undefined),
    };
    this.term = new Terminal({
      allowProposedApi: true,
      cols: 80,
      rows: 24,
      scrollOnEraseInDisplay: true,
      reflowCursorLine: true,
      macOptionIsMeta: true,
      rightClickSelectsWord: false,
      minimumContrastRatio: 4.5,
      fontFamily: appearance.fontFamily || FONTS,
      fontSize: appearance.fontSize,
      scrollback: appearance.scrollback,
      cursorBlink: appearance.cursorBlink,
      screenReaderMode: appearance.screenReader,
      theme: appearance.theme,
      overviewRuler: { width: SCROLL_BAR },
      linkHandler: links,
    });
    const { term } = this;
    term.unicode.register(sessionWidths);
    term.unicode.activeVersion = sessionWidths.version;
    this.#mute = mute(term);
    term.parser.registerOscHandler(52, (data) => {
      events.onClipboard(parseOsc52(data));
      return true;
    });
    term.onData((data) => {
      if (!this.#mute.isAutomaticReply(data)) events.onInput(data, !this.#wheeling && !REPORT.test(data));
    });
    term.onRender(() => this.#handleRender());
    term.onBinary((data) => events.onBinaryInput(Uint8Array.from(data, (char) => char.charCodeAt(0) & 0xff)));
    term.loadAddon(new WebLinksAddon(links.activate, links));
    term.open(this.#host);
    // Typing scrolls to the cursor; touch gestures, which become wheel events, do not.
    for (const type of ["keydown", "input"])
      term.textarea?.addEventListener(type, () => this.showCursor(), { capture: true });
    // Programs on the alternate screen get arrow keys for a wheel. xterm.js sends them before the next task.
    this.#host.addEventListener("pointerdown", (event) => (this.#pointer = event.pointerType), { capture: true });
    this.#host.addEventListener("wheel", () => this.#noteWheel(), { capture: true, passive: true });
    this.#renderer = new Renderer(term, this.#host, container, () => this.layout());
    this.#renderer.gpu = appearance.gpu;
    this.#observer = new ResizeObserver(() => this.layout());
    this.#observer.observe(container);
    this.layout();
  }

  /** The size that the window has room for; before the first layout, the size of the terminal. */
  get window(): Size {
    return this.#window ?? { cols: this.term.cols, rows: this.term.rows };
  }

  /** Writes output. Calls `done` once xterm.js has processed it. */
  write(bytes: Uint8Array, done: () => void): void {
    this.#enqueue({ kind: "write", bytes, done });
  }

  /** Resizes the terminal after everything that was written before. */
  resize(size: Size): void {
    this.#enqueue({ kind: "resize", size });
  }

  /** Begins a snapshot. An earlier one that was not completed is dropped. */
  beginSnapshot(size: Size, whole: boolean): void {
    this.#snapshot = { size, whole, parts: [] };
  }

  addSnapshotPart(bytes: Uint8Array): void {
    this.#snapshot?.parts.push(bytes);
  }

  /** Writes the complete snapshot. Calls `done` once xterm.js has processed it. */
  endSnapshot(done: () => void): void {
    const snapshot = this.#snapshot;
    this.#snapshot = undefined;
    if (!snapshot) return done();
    this.resize(snapshot.size);
    this.write(concat(snapshot.whole ? [RESET, ...snapshot.parts] : snapshot.parts), () => {
      this.showCursor();
      done();
    });
  }

  /**
   * How much of the container's lower end is covered, in CSS pixels. The terminal keeps its size, and moves up as far as
   * the cursor needs.
   */
  set covered(pixels: number) {
    if (this.#covered === pixels) return;
    this.#covered = pixels;
    this.#uncoverCursor();
  }

  /** Whether another viewer sets the size. The terminal is then framed, and scaled down if it does not fit. */
  set framed(framed: boolean) {
    if (this.#framed === framed) return;
    this.#framed = framed;
    this.layout();
  }

  set appearance(appearance: Appearance) {
    const { options } = this.term;
    const before = this.#appearance;
    this.#appearance = appearance;
    if (before.theme !== appearance.theme) options.theme = appearance.theme;
    if (before.fontFamily !== appearance.fontFamily) options.fontFamily = appearance.fontFamily || FONTS;
    if (before.scrollback !== appearance.scrollback) options.scrollback = appearance.scrollback;
    if (before.cursorBlink !== appearance.cursorBlink) options.cursorBlink = appearance.cursorBlink;
    if (before.screenReader !== appearance.screenReader) options.screenReaderMode = appearance.screenReader;
    if (before.gpu !== appearance.gpu) this.#renderer.gpu = appearance.gpu;
    this.layout();
  }

  /** Fits the terminal into its container, and reports the size that the window has room for. */
  layout(): void {
    if (this.#disposed) return;
    const space = { width: this.#container.clientWidth - SCROLL_BAR, height: this.#container.clientHeight };
    if (space.width <= 0 || space.height <= 0) return;
    const cell = this.#fullSizeCell();
    if (!cell) {
      // Not rendered yet. Without a cell, the size would be wrong, and the session would be resized to it.
      cancelAnimationFrame(this.#frame);
      this.#frame = requestAnimationFrame(() => this.layout());
      return;
    }
    const window = sizeFor(space, cell);
    if (!this.#sized) this.term.resize(window.cols, window.rows);
    const size = { cols: this.term.cols, rows: this.term.rows };
    const previous = this.#window;
    this.#window = window;
    let font = this.#appearance.fontSize;
    if (this.#framed && !fits(space, size, cell)) {
      font = this.#setFont(fontFor(space, size, cell, font, font));
      while (!fits(space, size, this.#renderer.measure()) && smaller(font) < font) font = this.#setFont(smaller(font));
    } else {
      this.#setFont(font);
    }
    this.#renderer.scaleCells();
    const { width, height } = this.#renderer.measure();
    this.#host.style.width = `${Math.ceil(size.cols * width) + SCROLL_BAR}px`;
    this.#host.style.height = `${Math.ceil(size.rows * height)}px`;
    this.showCursor();
    this.#events.onLayout(size);
    if (previous?.cols !== window.cols || previous.rows !== window.rows) this.#events.onWindowSize(window);
  }

  /** Scrolls a terminal that is larger than its container to the cursor. */
  showCursor(): void {
    if (!this.#framed || this.#disposed) return;
    const { cursorX, cursorY, baseY, viewportY } = this.term.buffer.active;
    const { width, height } = this.#renderer.measure();
    const [host, container] = [this.#host.getBoundingClientRect(), this.#container.getBoundingClientRect()];
    const left = host.left - container.left + cursorX * width;
    const top = host.top - container.top + (baseY + cursorY - viewportY) * height;
    this.#container.scrollLeft += overflow(left, left + width, this.#container.clientWidth);
    this.#container.scrollTop += overflow(top, top + height, this.#container.clientHeight);
  }

  /** The text of the screen and the scrollback, and where the reader is in it. */
  text(): ReadText {
    return readText(this.term.buffer.active);
  }

  /** The first lines of the scrollback, enough to recognize them; without those, of the screen. */
  firstLines(): string {
    const { normal } = this.term.buffer;
    const lines: string[] = [];
    // The first line may be the rest of one that wrapped.
    for (let row = 1; row < normal.length && lines.length < FIRST_LINES; row++) {
      const line = normal.getLine(row);
      if (line && !line.isWrapped && !normal.getLine(row + 1)?.isWrapped) lines.push(line.translateToString(true));
      else if (lines.length > 0) break;
    }
    return lines.join("\n").trim() ? lines.join("\n") : "";
  }

  /** Hides the cursor of a program that has ended, after everything that was written before. */
  hideCursor(): void {
    this.write(HIDE_CURSOR, () => {});
  }

  dispose(): void {
    this.#disposed = true;
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    this.#mute.dispose();
    this.#renderer.dispose();
    this.term.dispose();
    this.#host.remove();
  }

  #handleRender(): void {
    if (this.#covered > 0) this.#uncoverCursor();
    const { baseY, viewportY } = this.term.buffer.active;
    const scroll = { up: viewportY < baseY, top: viewportY === 0 && baseY > 0 };
    if (scroll.up === this.#scroll.up && scroll.top === this.#scroll.top) return;
    this.#scroll = scroll;
    this.#events.onScroll(scroll);
  }

  #uncoverCursor(): void {
    let raised = 0;
    if (this.#covered > 0) {
      const { cursorY, baseY, viewportY } = this.term.buffer.active;
      const [host, container] = [this.#host.getBoundingClientRect(), this.#container.getBoundingClientRect()];
      const row = Math.min(baseY + cursorY - viewportY, this.term.rows - 1);
      const bottom = host.top + this.#raised - container.top + (row + 1) * this.#renderer.measure().height;
      raised = Math.min(Math.max(bottom - (this.#container.clientHeight - this.#covered), 0), this.#covered);
    }
    if (raised === this.#raised) return;
    this.#raised = raised;
    this.#host.style.transform = raised > 0 ? `translateY(${-raised}px)` : "";
  }

  #noteWheel(): void {
    this.#wheeling = true;
    setTimeout(() => (this.#wheeling = false));
  }

  #enqueue(operation: Operation): void {
    this.#operations.push(operation);
    this.#runQueue();
  }

  #runQueue(): void {
    for (let next = this.#operations[0]; next && !this.#disposed; next = this.#operations[0]) {
      if (next.kind === "resize") {
        if (this.#pendingWrites > 0) return;
        this.#operations.shift();
        this.#applySize(next.size);
      } else {
        this.#operations.shift();
        this.#pendingWrites += 1;
        const { bytes, done } = next;
        this.term.write(bytes, () => {
          this.#pendingWrites -= 1;
          done();
          this.#renderer.handleOutput();
          this.#runQueue();
        });
      }
    }
  }

  #applySize({ cols, rows }: Size): void {
    this.#sized = true;
    if (this.term.cols === cols && this.term.rows === rows) return;
    this.term.resize(cols, rows);
    this.layout();
  }

  /** Measures the cell at the font size of the settings, once for each font and renderer. */
  #fullSizeCell(): Pixels | undefined {
    const { fontSize, fontFamily } = this.#appearance;
    const key = `${fontSize} ${devicePixelRatio} ${this.#renderer.mode} ${fontFamily}`;
    if (this.#cell?.key !== key) {
      this.#setFont(fontSize);
      const cell = this.#renderer.measure();
      if (cell.width <= 0 || cell.height <= 0) return undefined;
      this.#cell = { key, cell };
    }
    return this.#cell.cell;
  }

  #setFont(size: number): number {
    if (this.term.options.fontSize !== size) this.term.options.fontSize = size;
    return size;
  }
}

/** How far the range from `start` to `end` is outside of the range from 0 to `length`; negative before its start. */
function overflow(start: number, end: number, length: number): number {
  return start < 0 ? start : Math.max(end - length, 0);
}

let stylesRedirected = false;

function redirectStylesOnce(): void {
  if (!stylesRedirected) redirectStyles();
  stylesRedirected = true;
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
