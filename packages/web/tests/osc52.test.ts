/** What a program may put on the clipboard. */
import { describe, expect, it } from "vitest";
import { CLIPBOARD_LIMIT, parseOsc52 } from "../src/terminal/osc52.ts";

const encode = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

describe("R29: a program writes to the clipboard", () => {
  it("as UTF-8 in base64", () => {
    expect(parseOsc52(`c;${encode("héllo 🪢")}`)).toEqual({ kind: "write", text: "héllo 🪢" });
    expect(parseOsc52(`;${encode("x")}`)).toEqual({ kind: "write", text: "x" });
    expect(parseOsc52(`pc;${encode("x")}`)).toEqual({ kind: "write", text: "x" });
  });

  it("and can never read it, nor clear it", () => {
    for (const data of ["c;?", ";?", "c;", "c", "", "c;!!", "z;eA==", "c;eA==\x07", "c;/w=="]) {
      expect(parseOsc52(data), data).toEqual({ kind: "ignored" });
    }
  });

  it("up to a bound", () => {
    const bytes = CLIPBOARD_LIMIT + 3;
    expect(parseOsc52(`c;${"QUFB".repeat(bytes / 3)}`)).toEqual({
      kind: "too-large",
      bytes: Math.floor(bytes / 3) * 3,
    });
    expect(parseOsc52(`c;${"QUFB".repeat(Math.floor(CLIPBOARD_LIMIT / 3))}`).kind).toBe("write");
  });
});
