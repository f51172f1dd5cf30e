/** The bytes of the key row's keys, and which keys are the app's own. */
import { describe, expect, it } from "vitest";
import {
  afterKey,
  ARROW_KEYS,
  bytesOf,
  FIRST_KEYS,
  modified,
  MORE_KEYS,
  type Modifiers,
  tapped,
} from "../src/terminal/keys.ts";
import { isCopyOrPaste, shortcutOf, SHORTCUTS } from "../src/terminal/shortcuts.ts";

const none = { ctrl: false, alt: false };

describe("R54: the key row", () => {
  it("sends what a keyboard would", () => {
    expect(bytesOf("Escape", none, false)).toBe("\x1b");
    expect(bytesOf("Tab", none, false)).toBe("\t");
    expect(bytesOf("BackTab", none, false)).toBe("\x1b[Z");
    expect(bytesOf("Enter", none, false)).toBe("\r");
    expect(bytesOf("Backspace", none, false)).toBe("\x7f");
    expect(bytesOf("F1", none, false)).toBe("\x1bOP");
    expect(bytesOf("F5", none, false)).toBe("\x1b[15~");
    expect(bytesOf("PageUp", none, false)).toBe("\x1b[5~");
  });

  it("follows the terminal's cursor mode", () => {
    expect(bytesOf("Up", none, false)).toBe("\x1b[A");
    expect(bytesOf("Up", none, true)).toBe("\x1bOA");
    expect(bytesOf("Home", none, true)).toBe("\x1bOH");
  });

  it("adds modifiers", () => {
    expect(bytesOf("Right", { ctrl: true, alt: false }, true)).toBe("\x1b[1;5C");
    expect(bytesOf("Left", { ctrl: false, alt: true }, false)).toBe("\x1b[1;3D");
    expect(bytesOf("Delete", { ctrl: true, alt: true }, false)).toBe("\x1b[3;7~");
    expect(bytesOf("Tab", { ctrl: false, alt: true }, false)).toBe("\x1b\t");
  });

  it("makes control characters of what is typed next", () => {
    const ctrl = { ctrl: true, alt: false };
    expect(modified("c", ctrl)).toBe("\x03");
    expect(modified("C", ctrl)).toBe("\x03");
    expect(modified("[", ctrl)).toBe("\x1b");
    expect(modified(" ", ctrl)).toBe("\0");
    expect(modified("?", ctrl)).toBe("\x7f");
    expect(modified("/", ctrl)).toBe("\x1f");
    expect(modified("é", ctrl)).toBe("é");
    expect(modified("b", { ctrl: false, alt: true })).toBe("\x1bb");
    expect(modified("c", { ctrl: true, alt: true })).toBe("\x1b\x03");
    expect(modified("pasted", ctrl)).toBe("pasted");
  });

  it("has modifiers that hold for one key, or until tapped again", () => {
    expect(["off", "once", "locked"].map((sticky) => tapped(sticky as "off"))).toEqual(["once", "locked", "off"]);
    const held: Modifiers = { ctrl: "once", alt: "locked" };
    expect(afterKey(held)).toEqual({ ctrl: "off", alt: "locked" });
  });

  it("names every key once", () => {
    const names = [...FIRST_KEYS, ...ARROW_KEYS, ...MORE_KEYS].map((key) => key.name);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("shortcuts", () => {
  const press = (code: string, held: Partial<Record<"ctrlKey" | "shiftKey" | "altKey" | "metaKey", boolean>>) => ({
    type: "keydown",
    code,
    ctrlKey: false,
    shiftKey: false,
    altKey: false,
    metaKey: false,
    ...held,
  });

  it("take nothing that a terminal can send", () => {
    for (const { code } of SHORTCUTS) {
      for (const held of [
        {},
        { ctrlKey: true },
        { altKey: true },
        { shiftKey: true },
        { ctrlKey: true, altKey: true },
      ]) {
        expect(shortcutOf(press(code, held), false)).toBeUndefined();
      }
    }
  });

  it("are found by Ctrl and Shift, and on a Mac by Command", () => {
    expect(shortcutOf(press("KeyF", { ctrlKey: true, shiftKey: true }), false)).toBe("search");
    expect(shortcutOf(press("KeyF", { metaKey: true }), true)).toBe("search");
    expect(shortcutOf(press("KeyF", { metaKey: true }), false)).toBeUndefined();
    expect(isCopyOrPaste(press("KeyV", { ctrlKey: true, shiftKey: true }))).toBe("paste");
    expect(isCopyOrPaste(press("KeyV", { ctrlKey: true }))).toBeUndefined();
  });

  it("are each their own", () => {
    expect(new Set(SHORTCUTS.map(({ code }) => code)).size).toBe(SHORTCUTS.length);
  });
});
