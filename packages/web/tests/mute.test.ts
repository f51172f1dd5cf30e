/** R24: a viewer's terminal replies to no query. Runs the real parser of xterm.js. */
import xterm from "@xterm/headless";
import { afterEach, describe, expect, it } from "vitest";
import { type MuteHooks, mute } from "../src/terminal/mute.ts";

let term: InstanceType<typeof xterm.Terminal>;
let hooks: MuteHooks;

function open(cols = 20, rows = 4) {
  term = new xterm.Terminal({ cols, rows, allowProposedApi: true });
  hooks = mute(term);
  let sent = "";
  term.onData((data) => {
    if (!hooks.isAutomaticReply(data)) sent += data;
  });
  return { sent: () => sent, write: (text: string) => new Promise<void>((done) => term.write(text, done)) };
}

afterEach(() => term.dispose());

const QUERIES = [
  "\x1b[c",
  "\x1b[0c",
  "\x9bc",
  "\x1b[>c",
  "\x1b[=c",
  "\x1b[5n",
  "\x1b[6n",
  "\x1b[?6n",
  "\x1b[?15n",
  "\x1b[x",
  "\x1b[4$p",
  "\x1b[?2026$p",
  "\x1b[?1$p",
  "\x1b[>q",
  "\x1b[?u",
  "\x1b[?4m",
  "\x1b[14t",
  "\x1b[16t",
  "\x1b[18t",
  "\x1b[21t",
  "\x1bZ",
  "\x1bP$qm\x1b\\",
  "\x1bP$qr\x1b\\",
  "\x1bP+q544e\x1b\\",
  "\x1b]4;1;?\x07",
  "\x1b]10;?\x1b\\",
  "\x1b]11;?\x07",
  "\x1b]12;?\x07",
  "\x1b]10;#fff;?\x07",
  "\x1b[?1004h",
];

describe("R24: viewers stay mute", () => {
  it("reply to no query", async () => {
    const { sent, write } = open();
    for (const query of QUERIES) {
      await write(query);
      expect(sent(), JSON.stringify(query)).toBe("");
    }
  });

  it("would reply without the hooks", async () => {
    const { sent, write } = open();
    hooks.dispose();
    await write("\x1b[c");
    expect(sent()).toContain("\x1b[?1;2c");
  });

  it("process all other sequences", async () => {
    const { write } = open();
    await write("\x1b[?1004h\x1b[?2004h\x1b[?1hok\x1b]10;#ffffff\x07");
    expect(term.modes).toMatchObject({
      sendFocusMode: true,
      bracketedPasteMode: true,
      applicationCursorKeysMode: true,
    });
    expect(term.buffer.active.getLine(0)?.translateToString(true)).toBe("ok");
  });

  it("send the focus reports of a real focus change", async () => {
    const { write } = open();
    await write("x");
    expect(hooks.isAutomaticReply("\x1b[I")).toBe(false);
    await write("\x1b[?1004h");
    expect(hooks.isAutomaticReply("\x1b[I")).toBe(false);
  });
});

describe("erasing above the cursor", () => {
  for (const sequence of ["\x1b[1J", "\x1b[?1J"]) {
    it(`works in the last cell of the last row: ${JSON.stringify(sequence)}`, async () => {
      const { write } = open(4, 2);
      await write(`aaaa\r\nbbbb${sequence}`);
      expect(term.buffer.active.getLine(0)?.translateToString(true)).toBe("");
      expect(term.buffer.active.getLine(1)?.translateToString(true)).toBe("");
    });
    it(`is left to xterm.js at other positions: ${JSON.stringify(sequence)}`, async () => {
      const { write } = open(4, 2);
      await write(`aaaa\r\nbbbb\x1b[2;2H${sequence}`);
      expect(term.buffer.active.getLine(0)?.translateToString(true)).toBe("");
      expect(term.buffer.active.getLine(1)?.translateToString(true)).toBe("  bb");
    });
  }
});
