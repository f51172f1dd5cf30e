/** Reads the output of a program: keeps its colours, and removes every other escape sequence. */

/** Text in one style. */
export interface Span {
  readonly text: string;
  readonly look: Look;
}

/** How text looks. Colours are a number of the palette, 0 to 15, or written as in CSS. */
export interface Look {
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  readonly inverse?: boolean;
  readonly color?: number | string;
  readonly background?: number | string;
}

export interface AnsiText {
  readonly spans: readonly Span[];
  readonly lines: number;
  /** Characters at the end that were left out. */
  readonly omitted: number;
}

/** Characters that are read. */
export const MAX_TEXT = 512 * 1024;
/** After this many spans, the rest has no colours. */
const MAX_SPANS = 5000;
/** In spans longer than this, backspaces have no effect, to bound the time that they take. */
const MAX_BACK = 4096;
/** A longer output is folded to this much, if it is longer by more than a few lines. */
const FOLDED_LINES = 24;
const SPARE_LINES = 6;
const FOLDED_CHARACTERS = 6000;
const SPARE_CHARACTERS = 1000;
const PLAIN: Look = {};

/**
 * In this order: colours (SGR), other control sequences, strings that end on their line, other escape sequences, one that the
 * end of the text cuts off, line ends, and characters that move or ring.
 */
const SPECIAL = new RegExp(
  [
    /(?:\x1b\[|\x9b)(?<sgr>[0-9;:]*)m/,
    /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]/,
    /(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)/,
    /\x1b[ -/]+[0-~]|\x1b[0-OQ-WYZ\\`-~]/,
    /(?:\x1b\[|\x9b)[0-?]*[ -/]*$|\x1b[ -/]*$/,
    /(?<feed>\r?\n)/,
    /(?<move>[\r\b])/,
    /\x07/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "g",
);

export function readAnsi(whole: string): AnsiText {
  const text = whole.slice(0, MAX_TEXT);
  const lines = new Lines();
  let look = PLAIN;
  let end = 0;
  for (const match of text.matchAll(SPECIAL)) {
    lines.write(text.slice(end, match.index), look);
    end = match.index + match[0].length;
    const { sgr, feed, move } = match.groups ?? {};
    if (sgr !== undefined) look = changedLook(look, sgr);
    else if (feed !== undefined) lines.endLine();
    else if (move === "\r") lines.return();
    else if (move === "\b") lines.back();
  }
  lines.write(text.slice(end), look);
  const spans = lines.spans();
  return { spans, lines: lines.count, omitted: whole.length - text.length };
}

/** The first lines of an output, and whether there are more. An output that is hardly longer is not folded. */
export function firstLines(spans: readonly Span[]): { readonly spans: readonly Span[]; readonly folded: boolean } {
  const length = spans.reduce((sum, { text }) => sum + text.length, 0);
  const spare = endOf(spans, FOLDED_LINES + SPARE_LINES, FOLDED_CHARACTERS + SPARE_CHARACTERS);
  if (spare >= length) return { spans, folded: false };
  const first: Span[] = [];
  let left = endOf(spans, FOLDED_LINES, FOLDED_CHARACTERS);
  for (const span of spans) {
    if (left <= 0) break;
    first.push(span.text.length <= left ? span : { ...span, text: span.text.slice(0, left) });
    left -= span.text.length;
  }
  return { spans: first, folded: true };
}

/** How a look is written in CSS. Undefined if it is that of plain text. */
export function styleOf(look: Look): { classes: string; color?: string; background?: string } | undefined {
  if (look === PLAIN) return undefined;
  const { bold, dim, italic, underline, inverse } = look;
  const [front, back] = inverse ? [look.background, look.color] : [look.color, look.background];
  const plainInverse = inverse && front === undefined && back === undefined;
  const names = { bold, dim, italic, underline, inverse: plainInverse };
  // The palette's colours are for text; as a background, they are toned down so that any of them can be read on it.
  const background = typeof back === "number" ? `color-mix(in srgb, var(--ansi-${back}) 22%, transparent)` : back;
  const color = front === undefined || front === back ? readableOn(back) : textColor(front, back);
  return {
    classes: Object.entries(names)
      .flatMap(([name, set]) => (set ? [name] : []))
      .join(" "),
    ...(color !== undefined && { color }),
    ...(background !== undefined && { background }),
  };
}

/** A colour that the palette does not have is moved towards that of the page's text, unless it is on one of its kind. */
function textColor(color: number | string, background: number | string | undefined): string {
  if (typeof color === "number") return `var(--ansi-${color})`;
  return typeof background === "string" ? color : `color-mix(in srgb, ${color} 50%, var(--text))`;
}

/** Black or white, on a background that does not depend on the theme. */
function readableOn(background: number | string | undefined): string | undefined {
  if (typeof background !== "string") return undefined;
  const [red = 0, green = 0, blue = 0] = (background.match(/\d+/g) ?? []).map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "black" : "white";
}

/** Where these lines end, or as many characters if that is sooner. */
function endOf(spans: readonly Span[], lines: number, characters: number): number {
  let length = 0;
  for (const { text } of spans) {
    for (let feed = text.indexOf("\n"); feed >= 0; feed = text.indexOf("\n", feed + 1)) {
      lines -= 1;
      if (lines === 0) return Math.min(length + feed, characters);
    }
    length += text.length;
    if (length >= characters) return characters;
  }
  return length;
}

/** Collects text line by line. */
class Lines {
  #done: Span[] = [];
  #line: Span[] = [];
  /** The next text overwrites the line. */
  #returned = false;
  count = 0;

  write(text: string, look: Look) {
    if (text === "") return;
    if (this.#returned) this.#line = [];
    this.#returned = false;
    append(this.#line, { text, look: this.#done.length + this.#line.length < MAX_SPANS ? look : PLAIN });
  }

  return() {
    this.#returned = true;
  }

  /** Removes the last character of the line, unless the line is longer than any that is typed over. */
  back() {
    const last = this.#line.at(-1);
    if (!last || last.text.length > MAX_BACK) return;
    this.#line.pop();
    const text = last.text.slice(0, /[\uDC00-\uDFFF]/.test(last.text.at(-1) ?? "") ? -2 : -1);
    if (text) this.#line.push({ ...last, text });
  }

  endLine() {
    this.count += 1;
    this.#returned = false;
    // A line end has no look: it would only break up spans.
    append(this.#line, { text: "\n", look: this.#line.at(-1)?.look ?? this.#done.at(-1)?.look ?? PLAIN });
    this.#line.forEach((span) => append(this.#done, span));
    this.#line = [];
  }

  spans(): readonly Span[] {
    if (this.#line.length > 0) this.endLine();
    const last = this.#done.pop();
    const text = last?.text.slice(0, -1);
    if (last && text) this.#done.push({ ...last, text });
    return this.#done;
  }
}

/** Appends a span, to the last one if both look the same. */
function append(spans: Span[], span: Span) {
  const last = spans.at(-1);
  if (last && last.look === span.look) spans[spans.length - 1] = { ...last, text: last.text + span.text };
  else spans.push(span);
}

/** The look after a sequence of SGR parameters. */
function changedLook(before: Look, parameters: string): Look {
  // Colons are an older way to write the parts of a colour; the part for the colour space is left out.
  const flat = parameters
    .replace(/([345]8):2:\d*:(\d+:\d+:\d+)/g, "$1:2:$2")
    .replace(/4:0/g, "24")
    .replace(/4:\d+/g, "4");
  const codes = flat.split(/[;:]/, 64).map((code) => Number(code.slice(0, 4)));
  let look = before;
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i]!;
    if (code === 38 || code === 48 || code === 58) {
      const { color, length } = extendedColor(codes.slice(i + 1, i + 5));
      i += length;
      if (code !== 58 && color !== undefined) look = { ...look, [code === 38 ? "color" : "background"]: color };
    } else {
      look = changedBy(look, code);
    }
  }
  return look;
}

function changedBy(look: Look, code: number): Look {
  if (code === 0) return PLAIN;
  if (code === 1) return { ...look, bold: true };
  if (code === 2) return { ...look, dim: true };
  if (code === 3) return { ...look, italic: true };
  if (code === 4 || code === 21) return { ...look, underline: true };
  if (code === 7) return { ...look, inverse: true };
  if (code === 22) return without(look, "bold", "dim");
  if (code === 23) return without(look, "italic");
  if (code === 24) return without(look, "underline");
  if (code === 27) return without(look, "inverse");
  if (code === 39) return without(look, "color");
  if (code === 49) return without(look, "background");
  if (code >= 30 && code <= 37) return { ...look, color: code - 30 };
  if (code >= 40 && code <= 47) return { ...look, background: code - 40 };
  if (code >= 90 && code <= 97) return { ...look, color: code - 82 };
  if (code >= 100 && code <= 107) return { ...look, background: code - 92 };
  return look;
}

function without(look: Look, ...names: readonly (keyof Look)[]): Look {
  const rest = Object.entries(look).filter(([name]) => !names.includes(name as keyof Look));
  return rest.length === 0 ? PLAIN : Object.fromEntries(rest);
}

/** The colour after 38 or 48: `5;N` of a palette of 256, or `2;R;G;B`. */
function extendedColor([kind, a = 0, b = 0, c = 0]: readonly number[]): { color?: number | string; length: number } {
  if (kind === 2) return { ...([a, b, c].every((part) => part <= 255) && { color: `rgb(${a} ${b} ${c})` }), length: 4 };
  if (kind !== 5 || a > 255) return { length: kind === 5 ? 2 : 1 };
  if (a < 16) return { color: a, length: 2 };
  const level = (step: number) => (step === 0 ? 0 : 55 + 40 * step);
  const cube = [Math.floor((a - 16) / 36), Math.floor((a - 16) / 6) % 6, (a - 16) % 6].map(level);
  const grey = 8 + 10 * (a - 232);
  return { color: `rgb(${(a < 232 ? cube : [grey, grey, grey]).join(" ")})`, length: 2 };
}
