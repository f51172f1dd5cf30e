/** Tests the bytes that the key row sends, and the app's shortcuts. */
import { describe, expect, it } from "vitest";
import {
  applyModifiers,
  SECOND_KEYS,
  FIRST_KEYS,
  keyBytes,
  type Modifiers,
  MORE_KEYS,
  nextModifierState,
  releaseModifiers,
} from "../src/terminal/keys.ts";
import { clipboardKey, shortcutAction, SHORTCUTS } from "../src/session/shortcuts.ts";

const none = { ctrl: false, alt: false };

describe("R54: the key row", () => {
  it("sends the same bytes as a keyboard", () => {
    expect(keyBytes("Escape", none, false)).toBe("\x1b");
    expect(keyBytes("Tab", none, false)).toBe("\t");
    expect(keyBytes("BackTab", none, false)).toBe("\x1b[Z");
    expect(keyBytes("Enter", none, false)).toBe("\r");
    expect(keyBytes("Backspace", none, false)).toBe("\x7f");
    expect(keyBytes("F1", none, false)).toBe("\x1bOP");
    expect(keyBytes("F5", none, false)).toBe("\x1b[15~");
    expect(keyBytes("PageUp", none, false)).toBe("\x1b[5~");
  });

  it("respects the terminal's application cursor mode", () => {
    expect(keyBytes("Up", none, false)).toBe("\x1b[A");
    expect(keyBytes("Up", none, true)).toBe("\x1bOA");
    expect(keyBytes("Home", none, true)).toBe("\x1bOH");
  });

  it("adds modifiers", () => {
    expect(keyBytes("Right", { ctrl: true, alt: false }, true)).toBe("\x1b[1;5C");
    expect(keyBytes("Left", { ctrl: false, alt: true }, false)).toBe("\x1b[1;3D");
    expect(keyBytes("Delete", { ctrl: true, alt: true }, false)).toBe("\x1b[3;7~");
    expect(keyBytes("Tab", { ctrl: false, alt: true }, false)).toBe("\x1b\t");
  });

  it("turns the next typed character into a control character", () => {
    const ctrl = { ctrl: true, alt: false };
    expect(applyModifiers("c", ctrl)).toBe("\x03");
    expect(applyModifiers("C", ctrl)).toBe("\x03");
    expect(applyModifiers("[", ctrl)).toBe("\x1b");
    expect(applyModifiers(" ", ctrl)).toBe("\0");
    expect(applyModifiers("?", ctrl)).toBe("\x7f");
    expect(applyModifiers("/", ctrl)).toBe("\x1f");
    expect(applyModifiers("é", ctrl)).toBe("é");
    expect(applyModifiers("b", { ctrl: false, alt: true })).toBe("\x1bb");
    expect(applyModifiers("c", { ctrl: true, alt: true })).toBe("\x1b\x03");
    expect(applyModifiers("pasted", ctrl)).toBe("pasted");
  });

  it("has modifiers that apply to one key, or until they are tapped again", () => {
    expect(["off", "once", "locked"].map((state) => nextModifierState(state as "off"))).toEqual([
      "once",
      "locked",
      "off",
    ]);
    const held: Modifiers = { ctrl: "once", alt: "locked" };
    expect(releaseModifiers(held)).toEqual({ ctrl: "off", alt: "locked" });
  });

  it("gives every key a unique name", () => {
    const names = [...FIRST_KEYS, ...SECOND_KEYS, ...MORE_KEYS].map((key) => key.name);
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

  it("use no key that a terminal can send", () => {
    for (const { code } of SHORTCUTS) {
      for (const held of [
        {},
        { ctrlKey: true },
        { altKey: true },
        { shiftKey: true },
        { ctrlKey: true, altKey: true },
      ]) {
        expect(shortcutAction(press(code, held), false)).toBeUndefined();
      }
    }
  });

  it("use Ctrl+Shift, and Command on a Mac", () => {
    expect(shortcutAction(press("KeyF", { ctrlKey: true, shiftKey: true }), false)).toBe("search");
    expect(shortcutAction(press("KeyF", { metaKey: true }), true)).toBe("search");
    expect(shortcutAction(press("KeyF", { metaKey: true }), false)).toBeUndefined();
    expect(clipboardKey(press("KeyV", { ctrlKey: true, shiftKey: true }))).toBe("paste");
    expect(clipboardKey(press("KeyV", { ctrlKey: true }))).toBeUndefined();
  });

  it("each use a different key", () => {
    expect(new Set(SHORTCUTS.map(({ code }) => code)).size).toBe(SHORTCUTS.length);
  });
});
