/**
 * One terminal on the page: xterm.js, told things in the order in which they happened.
 *
 * xterm.js applies `resize()` before queued `write()`s, so a resize waits here until everything before it is written. A whole
 * snapshot is written in one piece, reset included, so that no frame shows an empty terminal.
 */
import type { Size } from "@bowline/client";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { type ITheme, Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { Drawing } from "./drawing.ts";
import { fits, fontFor, type Pixels, sizeFor, smaller } from "./letterbox.ts";
import { type Mute, mute } from "./mute.ts";
import { type ClipboardRequest, parseOsc52 } from "./osc52.ts";
import { adoptStyles } from "./styles.ts";
import { sessionWidths } from "./widths.ts";

/** The monospaced fonts that systems bring along. */
const FONTS =
  'ui-monospace, "SF Mono", "Cascadia Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace';
/** The scroll bar's place, right of the last column. */
const SCROLL_BAR = 12;
/**
 * Ends an unfinished sequence and resets everything. xterm.js shows no cursor before the terminal first has the focus, or a program
 * leaves the other screen: so this leaves it, and a phone shows where the cursor is before somebody taps.
 */
const RESET = new TextEncoder().encode("\x18\x1bc\x1b[?47l");
/** Links that may be opened. */
const LINK = /^(https?|mailto):/i;

/** How a terminal looks. */
export interface Looks {
  readonly theme: ITheme;
  readonly fontSize: number;
  readonly fontFamily: string;
  readonly scrollback: number;
  readonly cursorBlink: boolean;
  readonly screenReader: boolean;
  readonly gpu: boolean;
}

/** What a terminal tells. */
export interface ScreenEvents {
  /** Somebody typed, pasted or used the mouse. */
  typed(data: string): void;
  /** Mouse reports that are not text. */
  typedBytes(data: Uint8Array): void;
  /** The window has room for this size, at the wanted font. */
  window(size: Size): void;
  /** The program wants something on the clipboard. */
  clipboard(request: ClipboardRequest): void;
  /** The size of the terminal, and whether it is smaller than wanted or framed. */
  laidOut(size: Size, font: number): void;
}

type Op =
  | { readonly kind: "write"; readonly bytes: Uint8Array; readonly done: () => void }
  | { readonly kind: "resize"; readonly size: Size };

/** A terminal in an element of the page. */
export class Screen {
  readonly term: Terminal;
  readonly #place: HTMLElement;
  readonly #host: HTMLElement;
  readonly #events: ScreenEvents;
  readonly #mute: Mute;
  readonly #drawing: Drawing;
  readonly #observer: ResizeObserver;
  #looks: Looks;
  /** What waits behind a resize. */
  #ops: Op[] = [];
  /** Writes that xterm.js has not taken yet. */
  #writing = 0;
  #snapshot: { size: Size; whole: boolean; parts: Uint8Array[] } | undefined;
  /** The session has told its size. Until then the terminal has the window's, which it most often turns out to be. */
  #sized = false;
  /** The size is somebody else's. */
  #framed = false;
  /** The cell at the wanted font, until the font changes. */
  #cell: { readonly key: string; readonly cell: Pixels } | undefined;
  #window: Size | undefined;
  #disposed = false;
  #frame = 0;

  constructor(place: HTMLElement, looks: Looks, events: ScreenEvents) {
    this.#place = place;
    this.#looks = looks;
    this.#events = events;
    this.#host = document.createElement("div");
    this.#host.className = "screen-host";
    place.append(this.#host);
    prepare();
    this.term = new Terminal({
      allowProposedApi: true,
      cols: 80,
      rows: 24,
      scrollOnEraseInDisplay: true,
      reflowCursorLine: true,
      macOptionIsMeta: true,
      rightClickSelectsWord: false,
      minimumContrastRatio: 4.5,
      fontFamily: looks.fontFamily || FONTS,
      fontSize: looks.fontSize,
      scrollback: looks.scrollback,
      cursorBlink: looks.cursorBlink,
      screenReaderMode: looks.screenReader,
      theme: looks.theme,
      overviewRuler: { width: SCROLL_BAR },
      linkHandler: { activate: (_, uri) => openLink(uri) },
    });
    const { term } = this;
    term.unicode.register(sessionWidths);
    term.unicode.activeVersion = sessionWidths.version;
    this.#mute = mute(term);
    term.parser.registerOscHandler(52, (data) => {
      events.clipboard(parseOsc52(data));
      return true;
    });
    term.onData((data) => {
      if (!this.#mute.isAnswer(data)) events.typed(data);
    });
    term.onBinary((data) => events.typedBytes(Uint8Array.from(data, (char) => char.charCodeAt(0) & 0xff)));
    term.loadAddon(new WebLinksAddon((_, uri) => openLink(uri)));
    term.open(this.#host);
    // Keys lead back to the cursor; what a finger makes of a wheel does not.
    for (const typed of ["keydown", "input"])
      term.textarea?.addEventListener(typed, () => this.showCursor(), { capture: true });
    this.#drawing = new Drawing(term, this.#host, place, () => this.layout());
    this.#drawing.gpu = looks.gpu;
    this.#observer = new ResizeObserver(() => this.layout());
    this.#observer.observe(place);
    this.layout();
  }

  /** The size that the window has room for, as far as it is known. */
  get window(): Size {
    return this.#window ?? { cols: this.term.cols, rows: this.term.rows };
  }

  /** Output; `done` once it is on the screen. */
  write(bytes: Uint8Array, done: () => void): void {
    this.#do({ kind: "write", bytes, done });
  }

  /** The terminal has this size after what was written before. */
  resize(size: Size): void {
    this.#do({ kind: "resize", size });
  }

  /** A snapshot begins; one that was cut off before its end is forgotten. */
  beginSnapshot(size: Size, whole: boolean): void {
    this.#snapshot = { size, whole, parts: [] };
  }

  /** Part of a snapshot. */
  partOfSnapshot(bytes: Uint8Array): void {
    this.#snapshot?.parts.push(bytes);
  }

  /** The snapshot is complete; `done` once it is on the screen. */
  endSnapshot(done: () => void): void {
    const snapshot = this.#snapshot;
    this.#snapshot = undefined;
    if (!snapshot) return done();
    this.resize(snapshot.size);
    this.write(joined(snapshot.whole ? [RESET, ...snapshot.parts] : snapshot.parts), () => {
      this.showCursor();
      done();
    });
  }

  /** Whether the size is somebody else's: then the terminal is framed, and drawn smaller if it has to be. */
  set framed(framed: boolean) {
    if (this.#framed === framed) return;
    this.#framed = framed;
    this.layout();
  }

  /** Looks changed. */
  set looks(looks: Looks) {
    const { options } = this.term;
    const before = this.#looks;
    this.#looks = looks;
    if (before.theme !== looks.theme) options.theme = looks.theme;
    if (before.fontFamily !== looks.fontFamily) options.fontFamily = looks.fontFamily || FONTS;
    if (before.scrollback !== looks.scrollback) options.scrollback = looks.scrollback;
    if (before.cursorBlink !== looks.cursorBlink) options.cursorBlink = looks.cursorBlink;
    if (before.screenReader !== looks.screenReader) options.screenReaderMode = looks.screenReader;
    if (before.gpu !== looks.gpu) this.#drawing.gpu = looks.gpu;
    this.layout();
  }

  /** Fits the terminal into its place, and says for which size there is room. */
  layout(): void {
    if (this.#disposed) return;
    const place = { width: this.#place.clientWidth - SCROLL_BAR, height: this.#place.clientHeight };
    if (place.width <= 0 || place.height <= 0) return;
    const cell = this.#wantedCell();
    if (!cell) {
      // Not drawn yet: a size without a cell would be nonsense, and the session would take it.
      cancelAnimationFrame(this.#frame);
      this.#frame = requestAnimationFrame(() => this.layout());
      return;
    }
    const window = sizeFor(place, cell);
    if (!this.#sized) this.term.resize(window.cols, window.rows);
    const size = { cols: this.term.cols, rows: this.term.rows };
    const known = this.#window;
    this.#window = window;
    let font = this.#looks.fontSize;
    if (this.#framed && !fits(place, size, cell)) {
      font = this.#setFont(fontFor(place, size, cell, font, font));
      while (!fits(place, size, this.#drawing.measure()) && smaller(font) < font) font = this.#setFont(smaller(font));
    } else {
      this.#setFont(font);
    }
    this.#drawing.press();
    const { width, height } = this.#drawing.measure();
    this.#host.style.width = `${Math.ceil(size.cols * width) + SCROLL_BAR}px`;
    this.#host.style.height = `${Math.ceil(size.rows * height)}px`;
    this.showCursor();
    this.#events.laidOut(size, font);
    if (known?.cols !== window.cols || known.rows !== window.rows) this.#events.window(window);
  }

  /** A terminal that is larger than its place shows the part where the cursor is. */
  showCursor(): void {
    if (!this.#framed || this.#disposed) return;
    const { cursorX, cursorY, baseY, viewportY } = this.term.buffer.active;
    const { width, height } = this.#drawing.measure();
    const [host, place] = [this.#host.getBoundingClientRect(), this.#place.getBoundingClientRect()];
    const left = host.left - place.left + cursorX * width;
    const top = host.top - place.top + (baseY + cursorY - viewportY) * height;
    this.#place.scrollLeft += outside(left, left + width, this.#place.clientWidth);
    this.#place.scrollTop += outside(top, top + height, this.#place.clientHeight);
  }

  /** Everything on the screen and above it, as text. */
  text(): string {
    const { active } = this.term.buffer;
    let text = "";
    for (let row = 0; row < active.length; row++) {
      const line = active.getLine(row);
      if (line)
        text += (row > 0 && !line.isWrapped ? "\n" : "") + line.translateToString(!active.getLine(row + 1)?.isWrapped);
    }
    return text.trimEnd();
  }

  /** Takes the terminal off the page. */
  dispose(): void {
    this.#disposed = true;
    cancelAnimationFrame(this.#frame);
    this.#observer.disconnect();
    this.#mute.dispose();
    this.#drawing.dispose();
    this.term.dispose();
    this.#host.remove();
  }

  #do(op: Op): void {
    this.#ops.push(op);
    this.#work();
  }

  #work(): void {
    for (let op = this.#ops[0]; op && !this.#disposed; op = this.#ops[0]) {
      if (op.kind === "resize") {
        if (this.#writing > 0) return;
        this.#ops.shift();
        this.#apply(op.size);
      } else {
        this.#ops.shift();
        this.#writing += 1;
        const { bytes, done } = op;
        this.term.write(bytes, () => {
          this.#writing -= 1;
          done();
          this.#drawing.handleOutput();
          this.#work();
        });
      }
    }
  }

  #apply({ cols, rows }: Size): void {
    this.#sized = true;
    if (this.term.cols === cols && this.term.rows === rows) return;
    this.term.resize(cols, rows);
    this.layout();
  }

  /** The cell at the wanted font, measured once for each font. */
  #wantedCell(): Pixels | undefined {
    const { fontSize, fontFamily } = this.#looks;
    const key = `${fontSize} ${devicePixelRatio} ${this.#drawing.by} ${fontFamily}`;
    if (this.#cell?.key !== key) {
      this.#setFont(fontSize);
      const cell = this.#drawing.measure();
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

let prepared = false;
/** How far something from here to there is outside a room that begins at 0. */
function outside(from: number, to: number, room: number): number {
  return from < 0 ? from : Math.max(to - room, 0);
}

function prepare(): void {
  if (!prepared) adoptStyles();
  prepared = true;
}

function openLink(uri: string): void {
  if (LINK.test(uri)) window.open(uri, "_blank", "noopener,noreferrer");
}

function joined(parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
