/**
 * Viewers stay mute: only the session answers the terminal. Whatever would make xterm.js answer by itself is swallowed here,
 * and one sequence on which it throws is done by hand.
 */
import type { IDisposable, IFunctionIdentifier, IParser } from "@xterm/xterm";

/** As much of a terminal as is hooked: the browser's and the headless one are alike. */
export interface Hooked {
  readonly parser: IParser;
  readonly cols: number;
  readonly rows: number;
}

/** Control sequences that are nothing but questions. */
const QUESTIONS: readonly IFunctionIdentifier[] = [
  // Device attributes, primary to tertiary.
  { final: "c" },
  { prefix: ">", final: "c" },
  { prefix: "=", final: "c" },
  // Device status, cursor position.
  { final: "n" },
  { prefix: "?", final: "n" },
  // Terminal parameters, modes, version.
  { final: "x" },
  { intermediates: "$", final: "p" },
  { prefix: "?", intermediates: "$", final: "p" },
  { prefix: ">", final: "q" },
  // Presentation state, checksum of a rectangle, locator.
  { intermediates: "$", final: "w" },
  { intermediates: "$", final: "u" },
  { intermediates: "*", final: "y" },
  { intermediates: "'", final: "|" },
  // Kitty keyboard flags, key modifiers, graphics attributes.
  { prefix: "?", final: "u" },
  { prefix: "?", final: "m" },
  { prefix: "?", final: "S" },
];
/** Window operations that report something. */
const WINDOW_REPORTS = new Set([11, 13, 14, 15, 16, 18, 19, 20, 21]);
/** Commands that set a colour, or ask for it. */
const COLOURS = [4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
const FOCUS_REPORTS = 1004;

/** The hooks of one terminal. */
export interface Mute extends IDisposable {
  /** Whether this data of the terminal's is an answer of its own, and nobody typed it. */
  isAnswer(data: string): boolean;
}

/** Hooks a terminal. */
export function mute(term: Hooked): Mute {
  const { parser } = term;
  // Set while output is parsed that makes xterm.js report its focus; no user can do anything before the parser is done.
  let reporting = false;
  const hooks: IDisposable[] = [
    ...QUESTIONS.map((question) => parser.registerCsiHandler(question, () => true)),
    parser.registerCsiHandler({ final: "t" }, (params) => WINDOW_REPORTS.has(first(params))),
    parser.registerEscHandler({ final: "Z" }, () => true),
    parser.registerDcsHandler({ intermediates: "$", final: "q" }, () => true),
    parser.registerDcsHandler({ intermediates: "+", final: "q" }, () => true),
    ...COLOURS.map((code) => parser.registerOscHandler(code, (data) => data.split(";").includes("?"))),
    parser.registerCsiHandler({ prefix: "?", final: "h" }, (params) => {
      if (params.flat().includes(FOCUS_REPORTS)) {
        reporting = true;
        queueMicrotask(() => (reporting = false));
      }
      return false;
    }),
    ...["", "?"].map((prefix) =>
      parser.registerCsiHandler(
        prefix ? { prefix, final: "J" } : { final: "J" },
        (params) => first(params) === 1 && eraseAbove(term, prefix === "?"),
      ),
    ),
  ];
  return {
    isAnswer: (data) => reporting && (data === "\x1b[I" || data === "\x1b[O"),
    dispose: () => hooks.splice(0).forEach((hook) => hook.dispose()),
  };
}

/** The parts of xterm.js 6.0 that `eraseAbove` needs; none of them is public. */
interface Internals {
  readonly _inputHandler: {
    eraseInDisplay(params: { params: number[] }, respectProtect: boolean): boolean;
    eraseInLine(params: { params: number[] }, respectProtect: boolean): boolean;
  };
  readonly _bufferService: { readonly buffer: { x: number; y: number } };
}

/**
 * Erases above the cursor. xterm.js 6.0.0 throws when the cursor is in the last cell of the last row, since it looks for a row
 * below. So the cursor's row is erased on its own, and the rest with the cursor at the row's start.
 */
function eraseAbove(term: Hooked, respectProtect: boolean): boolean {
  const { _inputHandler: input, _bufferService: service } = (term as unknown as { _core: Internals })._core;
  const { buffer } = service;
  if (buffer.x < term.cols - 1) return false;
  const { x } = buffer;
  input.eraseInLine({ params: [1] }, respectProtect);
  buffer.x = 0;
  input.eraseInDisplay({ params: [1] }, respectProtect);
  buffer.x = Math.min(x, term.cols - 1);
  return true;
}

function first(params: readonly (number | number[])[]): number {
  const value = params[0] ?? 0;
  return typeof value === "number" ? value : (value[0] ?? 0);
}
