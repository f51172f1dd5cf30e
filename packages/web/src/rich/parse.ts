/** Parses one piece of GitHub-flavoured Markdown into a tree of limited depth. */
import type { Definition, FootnoteDefinition, Nodes, RootContent } from "mdast";
import { fromMarkdown } from "mdast-util-from-markdown";
import { gfmFromMarkdown } from "mdast-util-gfm";
import { gfm } from "micromark-extension-gfm";

/** What links and footnotes refer to. */
export type DefinitionNode = Definition | FootnoteDefinition;

/** A node at the top of a document. Offsets are those of its piece. */
export interface TopNode {
  readonly node: RootContent;
  /** Where its first line starts. */
  readonly start: number;
  /** What it defines, for the whole document. */
  readonly defines: readonly DefinitionNode[];
}

// A single tilde stands for "about", and for the home directory.
const SYNTAX = [gfm({ singleTilde: false })];
const TREE = [gfmFromMarkdown()];
/** Containers below this depth are shown as their source. */
const MAX_DEPTH = 32;
const CONTAINERS: ReadonlySet<string> = new Set([
  "blockquote",
  "list",
  "emphasis",
  "strong",
  "delete",
  "link",
  "linkReference",
]);

/**
 * Parses a piece of a document that starts at the beginning of a top node's line. `known` are definitions elsewhere in
 * the document that the piece may refer to.
 */
export function parsePiece(text: string, known: readonly DefinitionNode[]): TopNode[] {
  const prefix = definitionLines(known);
  try {
    const root = fromMarkdown(prefix + text, { extensions: SYNTAX, mdastExtensions: TREE });
    return root.children.flatMap((node) => topNode(node, prefix + text, prefix.length));
  } catch {
    // The parser has run out of stack.
    return [{ node: literal(text), start: 0, defines: [] }];
  }
}

/** Text that is shown as it is. */
export function literal(text: string): RootContent {
  return { type: "html", value: text };
}

function topNode(node: RootContent, text: string, begin: number): TopNode[] {
  const { start } = node.position!;
  const offset = start.offset! - (start.column - 1);
  if (offset < begin) return [];
  const defines: DefinitionNode[] = [];
  finish(node, text, 0, defines);
  return [{ node, start: offset - begin, defines }];
}

/** Replaces containers that are too deep, collects definitions, and drops the positions. */
function finish(node: Nodes, text: string, depth: number, defines: DefinitionNode[]): void {
  if (node.type === "definition" || node.type === "footnoteDefinition") defines.push(node);
  if ("children" in node) {
    const children: Nodes[] = node.children;
    children.forEach((child, i) => {
      if (depth >= MAX_DEPTH && CONTAINERS.has(child.type) && child.position) {
        const { start, end } = child.position;
        children[i] = { type: "html", value: text.slice(start.offset, end.offset) };
      } else {
        finish(child, text, depth + 1, defines);
      }
    });
  }
  delete node.position;
}

/** Lines that make the parser know these definitions. The rule ends the last footnote, which indented code would continue. */
function definitionLines(known: readonly DefinitionNode[]): string {
  if (known.length === 0) return "";
  const lines = known.map(({ type, identifier }) => `[${type === "definition" ? "" : "^"}${identifier}]: x\n\n`);
  return `${lines.join("")}***\n\n`;
}
