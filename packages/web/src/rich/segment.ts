/** A part of a document that is parsed by itself, with the same result as within the whole. */
import type { RootContent } from "mdast";
import { type DefinitionNode, parsePiece, type TopNode } from "./parse.ts";

/** A node at the top of the document. It is the same object for as long as it does not change. */
export interface Block {
  /** The offset of its first line. */
  readonly key: number;
  readonly node: RootContent;
  /** Whether text that follows can change it. */
  readonly open: boolean;
}

export interface Segment {
  readonly start: number;
  readonly end: number;
  readonly open: boolean;
  readonly blocks: readonly Block[];
  /** The labels in its source that may refer to definitions. */
  readonly labels: ReadonlySet<string>;
  /** The labels of definitions elsewhere that it was parsed with. */
  readonly given: ReadonlySet<string>;
  /** What it defines, by label. The first of several definitions counts. */
  readonly defines: Definitions;
}

/** What links and footnotes refer to, by label. */
export type Definitions = ReadonlyMap<string, DefinitionNode>;

export const NO_LABELS: ReadonlySet<string> = new Set();
/** A segment made of parsed nodes. Their offsets are relative to `start`. */
export function segmentOf(
  nodes: readonly TopNode[],
  { start, end, open, labels, given }: Pick<Segment, "start" | "end" | "open" | "labels" | "given">,
): Segment {
  // Definitions show nothing. A heading under one begins where it does, says the parser, so only one of them gets the key.
  const shown = nodes.filter(({ node }) => node.type !== "definition");
  const blocks = shown.map(({ node, start: offset }) => ({ key: start + offset, node, open }));
  const defines = new Map<string, DefinitionNode>();
  for (const definition of nodes.flatMap((top) => top.defines)) {
    if (!defines.has(keyOf(definition))) defines.set(keyOf(definition), definition);
  }
  return { start, end, open, blocks, labels, given, defines };
}

/** Whether definitions have come or gone since the segment was parsed, and may change it. */
export function isStale({ labels, given, defines }: Segment, definitions: Definitions): boolean {
  for (const label of labels) {
    if (definitions.has(label) !== (given.has(label) || defines.has(label))) return true;
  }
  return false;
}

/** Parses a segment again. */
export function parsedAgain(segment: Segment, text: string, definitions: Definitions): Segment {
  const given = new Set([...segment.labels].filter((label) => definitions.has(label) && !segment.defines.has(label)));
  const nodes = parsePiece(text.slice(segment.start, segment.end), definitionsOf(given, definitions));
  return segmentOf(nodes, { ...segment, given });
}

export function definitionsOf(labels: Iterable<string>, definitions: Definitions): DefinitionNode[] {
  return [...labels].flatMap((label) => definitions.get(label) ?? []);
}

/** The label of a definition, or what a reference to one refers to. */
export function keyOf({ type, identifier }: { readonly type: string; readonly identifier: string }): string {
  return normalized(type.startsWith("footnote") ? `^${identifier}` : identifier);
}

/** Everything in brackets. Lines that continue a label may have the indentation or the marks of containers. */
export function labelsIn(text: string): ReadonlySet<string> {
  if (!text.includes("[")) return NO_LABELS;
  const flat = text.replace(/\n[ \t>]*/g, " ");
  return new Set(Array.from(flat.matchAll(/\[((?:[^\\[\]]|\\[^]){1,999})\]/g), ([, label = ""]) => normalized(label)));
}

/** As the parser compares labels. */
function normalized(label: string): string {
  return label
    .replace(/[\t\n\r ]+/g, " ")
    .replace(/^ | $/g, "")
    .toLowerCase()
    .toUpperCase();
}

/**
 * The last node that nothing before it depends on, and that does not depend on anything before it; 0 if there is only
 * the first one. Its first line is complete: a part of one may become anything, such as the next item of a list.
 */
export function lastSplit(nodes: readonly TopNode[], text: string): number {
  const split = nodes.findLastIndex((top, i) => {
    const before = nodes[i - 1];
    if (!before || top.start <= before.start) return false;
    if (!text.includes("\n", top.start) || text[top.start] === "\uFEFF") return false;
    // What follows indented code is parsed a little differently, although it should not be.
    if (before.node.type === "code" && !isFenced(text, before.start)) return false;
    return isAfterBlankLine(text, top.start) || hasClearEnd(before) || hasClearStart(top, text);
  });
  return Math.max(split, 0);
}

function isAfterBlankLine(text: string, start: number): boolean {
  let i = start - 2;
  while (i >= 0 && (text[i] === " " || text[i] === "\t" || text[i] === "\r")) i -= 1;
  return i < 0 || text[i] === "\n";
}

/** Whether a node has ended when another one follows, even without a blank line. */
function hasClearEnd({ node }: TopNode): boolean {
  return node.type === "heading" || node.type === "thematicBreak" || node.type === "code";
}

/** Whether a node ends any node before it, and is the same without one, even without a blank line. */
function hasClearStart({ node, start }: TopNode, text: string): boolean {
  return node.type === "thematicBreak" || (node.type === "code" && isFenced(text, start));
}

function isFenced(text: string, start: number): boolean {
  return /^ {0,3}[`~]/.test(text.slice(start, start + 4));
}
