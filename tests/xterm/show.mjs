/**
 * Writes snapshots to xterm.js and prints the resulting screen, one JSON line per case.
 *
 * Reads a file of JSON lines: first `{widths: [[first, last, width], ..]}`, the characters whose width is not 1, then
 * cases `{cols, rows, parts: [base64, ..]}`. The output has the form of `Screen::json`, for comparison.
 */
import { readFileSync } from "node:fs";
import xterm from "@xterm/headless";

const [head, ...cases] = readFileSync(process.argv[2], "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));
const widths = new Uint8Array(0x110000).fill(1);
for (const [first, last, width] of head.widths) widths.fill(width, first, last + 1);

/** Uses the session emulator's table of widths, because versions of Unicode do not agree. */
const provider = {
  version: "bowline",
  wcwidth: (code) => widths[code],
  charProperties(code, preceding) {
    let width = widths[code];
    const before = (preceding >> 1) & 3;
    const join = width === 0 && before > 0;
    if (join) width = before;
    return (width << 1) | (join ? 1 : 0);
  },
};

for (const one of cases) {
  const term = new xterm.Terminal({
    cols: one.cols,
    rows: one.rows,
    scrollback: 5000,
    allowProposedApi: true,
    scrollOnEraseInDisplay: true,
    reflowCursorLine: true,
  });
  term.unicode.register(provider);
  term.unicode.activeVersion = "bowline";
  let said = "";
  term.onData((data) => (said += data));
  let title = "";
  term.onTitleChange((text) => (title = text));
  for (const part of one.parts) {
    said = "";
    await new Promise((done) => term.write(Buffer.from(part, "base64"), done));
  }
  console.log(JSON.stringify({ ...shown(term), said, title }));
  term.dispose();
}

function shown(term) {
  const { modes, buffer } = term;
  const inner = term._core._bufferService.buffer;
  return {
    alt: buffer.active.type === "alternate",
    cursor: { row: buffer.active.cursorY, col: buffer.active.cursorX },
    hidden: term._core.coreService.isCursorHidden,
    region: [inner.scrollTop, inner.scrollBottom + 1],
    tabs: Object.keys(inner.tabs)
      .map(Number)
      .filter((col) => inner.tabs[col]),
    modes: {
      app_cursor: modes.applicationCursorKeysMode,
      app_keypad: modes.applicationKeypadMode,
      autowrap: modes.wraparoundMode,
      bracketed_paste: modes.bracketedPasteMode,
      focus: modes.sendFocusMode,
      insert: modes.insertMode,
      mouse: { none: "off", x10: "x10", vt200: "click", drag: "drag", any: "motion" }[modes.mouseTrackingMode],
      mouse_coding: term._core.coreMouseService.activeEncoding,
      origin: modes.originMode,
      reverse_wrap: modes.reverseWraparoundMode,
    },
    active: lines(term, buffer.active),
    normal: lines(term, buffer.normal),
  };
}

function lines(term, buffer) {
  return Array.from({ length: buffer.length }, (_, row) => {
    const line = buffer.getLine(row);
    const next = buffer.getLine(row + 1);
    const wrapped = next?.isWrapped ?? false;
    const spans = [];
    for (let col = 0; col < term.cols; col++) {
      const cell = line.getCell(col);
      if (cell.getWidth() === 0) continue;
      const attributes = describe(term, cell);
      const text = cell.getChars() || " ";
      const last = spans.at(-1);
      if (last && JSON.stringify(last.attributes) === JSON.stringify(attributes)) last.text += text;
      else spans.push({ col, attributes, text });
    }
    const last = spans.at(-1);
    if (last && Object.keys(last.attributes).length === 0) last.text = last.text.replace(/ +$/, "");
    if (last?.text === "") spans.pop();
    return { wrapped, spans: spans.map(({ col, attributes, text }) => ({ col, text, ...attributes })) };
  });
}

/** The attributes that are set in a cell, named as in `Screen::json`, in alphabetical order. */
function describe(term, cell) {
  const all = {};
  const colour = (palette, rgb, value) =>
    palette ? value : rgb ? "#" + value.toString(16).padStart(6, "0") : undefined;
  const extended = cell.hasExtendedAttrs() ? cell.extended : undefined;
  all.bg = colour(cell.isBgPalette(), cell.isBgRGB(), cell.getBgColor());
  all.blink = cell.isBlink() ? true : undefined;
  all.bold = cell.isBold() ? true : undefined;
  all.dim = cell.isDim() ? true : undefined;
  all.fg = colour(cell.isFgPalette(), cell.isFgRGB(), cell.getFgColor());
  all.hidden = cell.isInvisible() ? true : undefined;
  all.inverse = cell.isInverse() ? true : undefined;
  all.italic = cell.isItalic() ? true : undefined;
  all.link = extended?.urlId ? term._core._oscLinkService.getLinkData(extended.urlId)?.uri : undefined;
  all.overline = cell.isOverline() ? true : undefined;
  all.strike = cell.isStrikethrough() ? true : undefined;
  const style = ((extended?._ext ?? 0) >> 26) & 7;
  const line = cell.fg & 0x10000000;
  all.underline = line ? ["single", "single", "double", "curly", "dotted", "dashed"][style] : undefined;
  for (const key of Object.keys(all)) if (all[key] === undefined) delete all[key];
  return all;
}
