/** Colours source code. Loaded when the first code of a known language is shown, since the grammars are large. */
import type { ElementContent, RootContent } from "hast";
import { common, createLowlight } from "lowlight";

/** A piece of code of one kind; without a kind, it has no colour. */
export interface Piece {
  readonly text: string;
  readonly kind: string;
}

const lowlight = createLowlight(common);
/** Pieces nested deeper than this have the colour of those around them. */
const MAX_DEPTH = 20;

/** The code in pieces. Undefined if the language is not known, or its grammar fails. */
export function highlight(code: string, language: string): readonly Piece[] | undefined {
  if (!lowlight.registered(language)) return undefined;
  try {
    const pieces: Piece[] = [];
    for (const node of lowlight.highlight(language, code).children) addPieces(node, "", 0, pieces);
    return pieces;
  } catch {
    return undefined;
  }
}

function addPieces(node: RootContent | ElementContent, kind: string, depth: number, pieces: Piece[]) {
  if (node.type === "text") {
    const last = pieces.at(-1);
    if (last?.kind === kind) pieces[pieces.length - 1] = { kind, text: last.text + node.value };
    else pieces.push({ kind, text: node.value });
  } else if (node.type === "element") {
    const inner = depth < MAX_DEPTH ? (kindOf(node.properties["className"]) ?? kind) : kind;
    for (const child of node.children) addPieces(child, inner, depth + 1, pieces);
  }
}

/** The kind that a class such as `hljs-keyword` stands for. */
function kindOf(classes: unknown): string | undefined {
  const first: unknown = Array.isArray(classes) ? classes[0] : undefined;
  return typeof first === "string" && first.startsWith("hljs-") ? first.slice("hljs-".length) : undefined;
}
