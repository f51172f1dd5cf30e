/**
 * Markdown that grows: parses only what can still change, and keeps everything before it as it is. The document is a
 * row of segments; the last one is open.
 */
import { readFence } from "./fence.ts";
import { type DefinitionNode, literal, parsePiece, type TopNode } from "./parse.ts";
import {
  type Block,
  type Definitions,
  definitionsOf,
  isStale,
  labelsIn,
  lastSplit,
  NO_LABELS,
  parsedAgain,
  type Segment,
  segmentOf,
} from "./segment.ts";
import { MAX_BLOCK, WINDOW, windowFrom } from "./window.ts";

/** What is after this many characters is shown as it is. */
export const MAX_PARSED = 128 * 1024;
/** What is after this many more characters is not shown. */
export const MAX_LITERAL = 1024 * 1024;

export class MarkdownText {
  blocks: readonly Block[] = [];
  definitions: Definitions = new Map();
  #text = "";
  /** They change only if definitions come or go. */
  #settled: Segment[] = [];
  #tail: Segment | undefined;
  /** Where the text starts that is not settled. */
  #from = 0;
  /** Set if the first block that is not settled is too large to be parsed: it reaches at least to here. */
  #tooLarge: number | undefined;

  /**
   * Takes the whole text so far. Stops after about `budget` milliseconds and shows the rest as it is. Returns whether
   * everything is parsed; if not, the caller has to call again.
   */
  update(whole: string, budget = Infinity): boolean {
    const text = whole.length > MAX_PARSED ? whole.slice(0, whole.lastIndexOf("\n", MAX_PARSED - 1) + 1) : whole;
    // What is settled depends on whole lines only.
    if (!text.startsWith(this.#text.slice(0, this.#text.lastIndexOf("\n") + 1))) this.#reset();
    this.#text = text;
    this.#tail = undefined;
    const deadline = performance.now() + budget;
    let ended = this.#step();
    while (!ended && performance.now() < deadline) ended = this.#step();
    const resolved = this.#resolve(deadline);
    this.blocks = this.#segments().flatMap(({ blocks }) => blocks);
    const rest = whole.slice(ended ? text.length : this.#from);
    if (rest.trim() !== "") {
      this.blocks = [...this.blocks, { key: whole.length - rest.length, node: literal(limited(rest)), open: false }];
    }
    return ended && resolved;
  }

  #reset() {
    this.#settled = [];
    this.#from = 0;
    this.#tooLarge = undefined;
  }

  #segments(): Segment[] {
    return this.#tail ? [...this.#settled, this.#tail] : this.#settled;
  }

  /** Parses some text. Returns whether the end of the text is reached. */
  #step(): boolean {
    const text = this.#text;
    const from = (this.#from = skipBlankLines(text, this.#from));
    const fence = readFence(text, from);
    if (fence) return this.#addUnparsed(from, fence.end, fence.code);
    if (this.#tooLarge !== undefined) return this.#addLiteral(from, this.#tooLarge);
    for (let size = WINDOW; ; size = MAX_BLOCK) {
      const { end, limited } = windowFrom(text, from, size);
      const piece = text.slice(from, end);
      const labels = labelsIn(piece);
      const given = new Set([...labels].filter((label) => this.definitions.has(label)));
      const nodes = parsePiece(piece, definitionsOf(given, this.definitions));
      const split = lastSplit(nodes, piece);
      const whole = { start: from, end, open: true, labels, given };
      if (split > 0) return this.#addSplit(nodes, split, whole);
      if (end === text.length) return this.#addTail(segmentOf(nodes, whole));
      if (limited) return this.#addLiteral(from, end);
    }
  }

  /** Settles the nodes of a window before `split`. */
  #addSplit(nodes: readonly TopNode[], split: number, window: Omit<Segment, "blocks" | "defines">): boolean {
    const offset = nodes[split]!.start;
    const at = window.start + offset;
    const part = (start: number, end: number) => ({
      ...window,
      start,
      end,
      labels: labelsIn(this.#text.slice(start, end)),
    });
    const ended = this.#settle(segmentOf(nodes.slice(0, split), { ...part(window.start, at), open: false }));
    // The next step reads a code block, or a window that reaches further.
    if (window.end < this.#text.length || readFence(this.#text, at)) return ended;
    const rest = nodes.slice(split).map((top) => ({ ...top, start: top.start - offset }));
    return this.#addTail(segmentOf(rest, part(at, window.end)));
  }

  #settle(segment: Segment): boolean {
    this.#settled.push(segment);
    if (segment.defines.size > 0) this.definitions = new Map([...segment.defines, ...this.definitions]);
    this.#from = segment.end;
    this.#tooLarge = undefined;
    return segment.end === this.#text.length;
  }

  #addTail(segment: Segment): boolean {
    this.#tail = segment;
    return true;
  }

  /** Adds a node that has not gone through the parser. Without an `end`, it is the tail. */
  #addUnparsed(start: number, end: number | undefined, node: TopNode["node"]): boolean {
    const open = end === undefined;
    const place = { start, end: end ?? this.#text.length, open, labels: NO_LABELS, given: NO_LABELS };
    const segment = segmentOf([{ node, start: 0, defines: [] }], place);
    return open ? this.#addTail(segment) : this.#settle(segment);
  }

  /** Adds a block that is too large to be parsed: up to the first blank line after `least`. */
  #addLiteral(from: number, least: number): boolean {
    const blank = /\n[ \t\r]*\n/g;
    blank.lastIndex = Math.max(least - 1, from);
    const end = blank.test(this.#text) ? blank.lastIndex : undefined;
    this.#tooLarge = least;
    return this.#addUnparsed(from, end, literal(this.#text.slice(from, end).trimEnd()));
  }

  /**
   * Parses segments again whose references have come to lead somewhere, or nowhere. Returns whether none is left that
   * has to be.
   */
  #resolve(deadline: number): boolean {
    const definitions = allDefinitions(this.#segments());
    let [parsed, left] = [0, 0];
    const resolved = (segment: Segment) => {
      if (!isStale(segment, definitions)) return segment;
      if (parsed > 0 && performance.now() > deadline) {
        left += 1;
        return segment;
      }
      parsed += 1;
      return parsedAgain(segment, this.#text, definitions);
    };
    this.#tail = this.#tail && resolved(this.#tail);
    this.#settled = this.#settled.map(resolved);
    if (!isSame(definitions, this.definitions)) this.definitions = definitions;
    return left === 0;
  }
}

function skipBlankLines(text: string, from: number): number {
  const blank = /(?:[ \t]*\r?\n)*/y;
  blank.lastIndex = from;
  blank.test(text);
  return blank.lastIndex;
}

function allDefinitions(segments: readonly Segment[]): Definitions {
  const all = new Map<string, DefinitionNode>();
  for (const [label, definition] of segments.flatMap(({ defines }) => [...defines])) {
    if (!all.has(label)) all.set(label, definition);
  }
  return all;
}

function isSame(a: Definitions, b: Definitions): boolean {
  return a.size === b.size && [...a].every(([label, definition]) => b.get(label) === definition);
}

function limited(text: string): string {
  if (text.length <= MAX_LITERAL) return text;
  return `${text.slice(0, MAX_LITERAL)}\n… (${text.length - MAX_LITERAL} more characters are not shown)`;
}

/**
 * The text without a last line that may become anything, such as `-`: it underlines a heading until the next character
 * makes it a list.
 */
export function withoutOpenMarker(text: string): string {
  const line = text.slice(text.lastIndexOf("\n") + 1);
  return /^ {0,3}(?:[-=*+_#>~`]{1,3}|\d{1,9}[.)]?) ?$/.test(line) ? text.slice(0, -line.length) : text;
}
