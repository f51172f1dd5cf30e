/**
 * Keeps viewers mute: only the session replies to terminal queries, so queries that xterm.js would reply to
 * are dropped here. Also works around one sequence on which xterm.js throws.
 */
import type { IDisposable, IFunctionIdentifier, IParser } from "@xterm/xterm";

/** The part of a terminal that is hooked, which the browser and headless versions of xterm.js share. */
export interface TerminalCore {
  readonly parser: IParser;
  readonly cols: number;
  readonly rows: number;
}

/** Control sequences that are only queries. */
const QUERIES: readonly IFunctionIdentifier[] = [
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
  // Presentation state, rectangle checksum, locator.
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
/** OSC commands that set or query a colour. */
const COLOURS = [4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
const FOCUS_REPORTS = 1004;

export interface MuteHooks extends IDisposable {
  /** Whether data from the terminal is an automatic reply rather than user input. */
  isAutomaticReply(data: string): boolean;
}

/** Installs the hooks in a terminal. */
export function mute(term: TerminalCore): MuteHooks {
  const { parser } = term;
  // Set while xterm.js parses output that makes it report its focus. No user input can occur until the parser is done.
  let reportsFocus = false;
  const hooks: IDisposable[] = [
    ...QUERIES.map((query) => parser.registerCsiHandler(query, () => true)),
    parser.registerCsiHandler({ final: "t" }, (params) => WINDOW_REPORTS.has(first(params))),
    parser.registerEscHandler({ final: "Z" }, () => true),
    parser.registerDcsHandler({ intermediates: "$", final: "q" }, () => true),
    parser.registerDcsHandler({ intermediates: "+", final: "q" }, () => true),
    ...COLOURS.map((code) => parser.registerOscHandler(code, (data) => data.split(";").includes("?"))),
    parser.registerCsiHandler({ prefix: "?", final: "h" }, (params) => {
      if (params.flat().includes(FOCUS_REPORTS)) {
        reportsFocus = true;
        queueMicrotask(() => (reportsFocus = false));
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
    isAutomaticReply: (data) => reportsFocus && (data === "\x1b[I" || data === "\x1b[O"),
    dispose: () => hooks.splice(0).forEach((hook) => hook.dispose()),
  };
}

/** Private parts of xterm.js 6.0 that `eraseAbove` needs. */
interface Internals {
  readonly _inputHandler: {
    eraseInDisplay(params: { params: number[] }, respectProtect: boolean): boolean;
    eraseInLine(params: { params: number[] }, respectProtect: boolean): boolean;
  };
  readonly _bufferService: { readonly buffer: { x: number; y: number } };
}

/**
 * Erases above the cursor. xterm.js 6.0.0 throws when the cursor is in the last cell of the last row, since
 * it accesses the row below. So this erases the cursor's row separately, and the rest with the cursor at the
 * start of the row.
 */
function eraseAbove(term: TerminalCore, respectProtect: boolean): boolean {
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
