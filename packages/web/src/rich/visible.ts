/** Makes characters visible that have no shape of their own, or that change the order of others. */

/** A part of a text: characters as they are, or a mark that stands for one that cannot be seen. */
export interface VisiblePart {
  readonly text: string;
  readonly mark: boolean;
}

/** More marks than this are not told apart from the text, to bound the number of parts. */
const MAX_MARKS = 2000;

/**
 * Control characters, formatting characters (which include the bidi controls), whatever Unicode says is drawn as
 * nothing, its two line separators, and halves of surrogate pairs. Line feeds and tabs stay as they are. So do a
 * variation selector and a zero width joiner that are part of an emoji.
 */
const INVISIBLE =
  /(?![\n\t])(?!(?<=\p{Extended_Pictographic})\uFE0F)(?!(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\uFE0F])\u200D(?=\p{Extended_Pictographic}))[\p{Cc}\p{Cf}\p{Cs}\p{DI}\u2028\u2029]/gu;
/** The same characters, for a quick test. It also finds the exceptions. */
const SUSPECT = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{DI}\u2028\u2029]/u;

/** The text with a visible name for each character that cannot be seen: `␛`, `⟨U+202E⟩`. Keeps line feeds and tabs. */
export function visible(text: string): string {
  return SUSPECT.test(text) ? text.replace(INVISIBLE, nameOf) : text;
}

/** What `visible` returns, with the names apart from the text. */
export function visibleParts(text: string): VisiblePart[] {
  if (!SUSPECT.test(text)) return text === "" ? [] : [{ text, mark: false }];
  const parts: VisiblePart[] = [];
  let end = 0;
  for (const match of text.matchAll(INVISIBLE)) {
    if (parts.length >= 2 * MAX_MARKS) break;
    if (match.index > end) parts.push({ text: text.slice(end, match.index), mark: false });
    parts.push({ text: nameOf(match[0]), mark: true });
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push({ text: visible(text.slice(end)), mark: false });
  return parts;
}

/** The picture of a control character, or the code point. */
function nameOf(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCodePoint(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}
