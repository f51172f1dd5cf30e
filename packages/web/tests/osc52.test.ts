/** Tests what a program may copy to the clipboard. */
import { describe, expect, it } from "vitest";
import { CLIPBOARD_LIMIT, parseOsc52 } from "../src/terminal/osc52.ts";

const encode = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

describe("R29: OSC 52", () => {
  it("writes UTF-8 text that is encoded as base64", () => {
    expect(parseOsc52(`c;${encode("héllo 🪢")}`)).toEqual({ kind: "write", text: "héllo 🪢" });
    expect(parseOsc52(`;${encode("x")}`)).toEqual({ kind: "write", text: "x" });
    expect(parseOsc52(`pc;${encode("x")}`)).toEqual({ kind: "write", text: "x" });
  });

  it("neither reads nor clears the clipboard", () => {
    for (const data of ["c;?", ";?", "c;", "c", "", "c;!!", "z;eA==", "c;eA==\x07", "c;/w=="]) {
      expect(parseOsc52(data), data).toEqual({ kind: "ignored" });
    }
  });

  it("refuses text above the limit", () => {
    const bytes = CLIPBOARD_LIMIT + 3;
    expect(parseOsc52(`c;${"QUFB".repeat(bytes / 3)}`)).toEqual({
      kind: "too-large",
      bytes: Math.floor(bytes / 3) * 3,
    });
    expect(parseOsc52(`c;${"QUFB".repeat(Math.floor(CLIPBOARD_LIMIT / 3))}`).kind).toBe("write");
  });
});
