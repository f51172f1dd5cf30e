/** Tests real programs across a reload: the screen afterwards is the same as before. */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type App, browserSuite, PHONE, type TerminalState } from "./parts/app.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

/** Waits until the screen is drawn completely, since programs print it in pieces. */
function waitForDrawn(app: App, isDrawn: (state: TerminalState) => boolean): Promise<TerminalState> {
  const check = async () => {
    const state = await app.terminalState();
    return isDrawn(state) ? state : undefined;
  };
  return until("the screen is drawn", check, async () => JSON.stringify(await app.terminalState()));
}

/** Reloads the page, and waits until it is attached. */
async function reload(app: App): Promise<void> {
  await app.page.reload();
  await app.waitForState("open");
}

test.each([
  ["a laptop", undefined],
  ["a phone", PHONE],
])("R22: on %s, vim shows the same screen after a reload, and continues", async (_, screen) => {
  const file = join(server.folder, "poem.txt");
  writeFileSync(file, Array.from({ length: 200 }, (_, row) => `row ${row + 1} of the poem`).join("\n") + "\n");
  const app = await open(screen ? { screen } : {});
  await app.visit(await server.new("vim", "-u", "NONE", "-N", "+set ruler", file));
  await app.prints("row 1 of the poem");
  await app.type("42G2W");
  // vim positions the cursor last.
  const drawn = ({ text, screen, cursor: [column, row] }: TerminalState) =>
    text.includes("42,8") && screen[row]!.startsWith("row 42 ") && column === 7;
  const before = await waitForDrawn(app, drawn);
  expect(before.buffer).toBe("alternate");
  await reload(app);
  expect(await waitForDrawn(app, drawn)).toEqual(before);
  // vim's modes still apply: arrow keys in application mode, then an insertion.
  await app.focus();
  await app.page.keyboard.press("ArrowDown");
  await app.prints("43,8");
  await app.type("iHERE \x1b:wq\r");
  await app.page.waitForSelector('[data-testid="exit"]:has-text("Exited normally")');
  expect(readFileSync(file, "utf8").split("\n")[42]).toBe("row 43 HERE of the poem");
});

test("R15: a page of vim is left by Back without an error, and vim hears that it lost the focus", async () => {
  const app = await open();
  const focusReports = `let [&t_fe, &t_fd] = ["\\e[?1004h", "\\e[?1004l"]`;
  const id = await server.new("vim", "-u", "NONE", "-N", "--cmd", focusReports, "+autocmd FocusLost * s/$/ LOST");
  await app.visit(id);
  // vim asks for focus reports when it has drawn its screen.
  const reportsFocus = () =>
    app.page.evaluate(() => {
      const { terminal } = document.querySelector('[data-testid="terminal"]') as unknown as {
        terminal: import("@xterm/xterm").Terminal;
      };
      return terminal.modes.sendFocusMode;
    });
  await until("vim asks for focus reports", reportsFocus);
  await app.focus();
  await app.page.goBack();
  await app.page.waitForSelector(`[data-session="${id}"]`);
  await until("vim hears it", async () => (await server.screen(id)).includes("LOST"));
});

test("R22: less shows the same page after a reload, and restores the shell's screen when it quits", async () => {
  const app = await open();
  await app.visit(await server.shell());
  await app.prints("ready>");
  await app.type("echo beneath $((7 * 7)); seq 5000 | less\r");
  await app.prints(/^1$/m);
  await app.type("4000g");
  // less prints its prompt last, below a full page.
  const drawn = ({ screen, rows, cursor: [column, row] }: TerminalState) =>
    screen[0] === "4000" &&
    screen[rows - 2] === String(4000 + rows - 2) &&
    screen[rows - 1] === ":" &&
    column === 1 &&
    row === rows - 1;
  const before = await waitForDrawn(app, drawn);
  expect(before.buffer).toBe("alternate");
  await reload(app);
  expect(await waitForDrawn(app, drawn)).toEqual(before);
  await app.type("q");
  const { buffer, text } = await app.prints("beneath 49");
  expect(buffer).toBe("normal");
  expect(text).not.toMatch(/^4000$/m);
});

test("R22: htop shows the session's screen after a reload", async () => {
  const app = await open();
  const id = await server.new("htop", "-d", "100");
  await app.visit(id);
  await app.prints("F10");
  await reload(app);
  await app.prints("F10");
  // htop redraws all the time, so wait for a moment when page and session agree.
  const trimmed = (lines: readonly string[]) =>
    lines
      .map((line) => line.trimEnd())
      .join("\n")
      .trimEnd();
  const same = async () => {
    const shown = await app.terminalState();
    return shown.buffer === "alternate" && trimmed(shown.screen) === trimmed((await server.screen(id)).split("\n"));
  };
  await until("the page shows the same as the session", same);
  await app.type("q");
  await app.page.waitForSelector('[data-testid="exit"]:has-text("Exited normally")');
});

test("R22: after 10 MB of output a reload shows the exact end of it", async () => {
  const app = await open();
  const id = await server.new("sh", "-c", "seq -f 'number %.0f' 700000; echo END; exec cat");
  await app.visit(id);
  await app.prints(/^END$/m);
  await app.page.addInitScript(() => {
    const check = () => {
      const { terminal } = (document.querySelector('[data-testid="terminal"]') ?? {}) as {
        terminal?: import("@xterm/xterm").Terminal;
      };
      const active = terminal?.buffer.active;
      const shown =
        active &&
        Array.from({ length: terminal.rows }, (_, row) => active.getLine(active.baseY + row)?.translateToString(true));
      if (shown?.includes("END")) performance.mark("painted");
      else requestAnimationFrame(check);
    };
    requestAnimationFrame(check);
  });
  await reload(app);
  const painted = await until("the first paint", () =>
    app.page.evaluate(() => performance.getEntriesByName("painted")[0]?.startTime),
  );
  console.log(`reload after 10 MB of output: screen painted after ${Math.round(painted)} ms`);
  const { text } = await app.prints(/^END$/m);
  const numbers = [...text.matchAll(/^number (\d+)$/gm)].map((match) => Number(match[1]));
  expect(numbers.length).toBeGreaterThan(500);
  expect(numbers.at(-1)).toBe(700000);
  expect(numbers.findIndex((number, at) => number !== numbers[0]! + at)).toBe(-1);
});

test("R25: Ctrl-C stops a flood of output, and the shell responds", async () => {
  const app = await open();
  await app.visit(await server.shell());
  await app.prints("ready>");
  await app.type("yes 'a line that never ends'\r");
  await app.prints(/(a line that never ends\n){20}/);
  await app.page.keyboard.press("Control+c");
  await app.prints(/\^C/);
  await app.type("echo free $((8 * 8))\r");
  await app.prints("free 64");
});

test("R29: a bracketed paste of 100 kB arrives exactly", async () => {
  const app = await open();
  const text = Array.from({ length: 2500 }, (_, row) => `${row} größer ✓ ${"abcdefgh".repeat(3)}`)
    .join("\n")
    .slice(0, 100_000);
  const sent = Buffer.from(`\x1b[200~${text.replaceAll("\n", "\r")}\x1b[201~`);
  expect(sent.length).toBeGreaterThan(100_000);
  await app.visit(
    await server.new(
      "sh",
      "-c",
      `stty raw -echo; printf '\\033[?2004hpaste now\\r\\n'; head -c ${sent.length} | sha256sum; sleep 1000`,
    ),
  );
  await app.prints("paste now");
  await app.focus();
  await app.page.evaluate((text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    document.activeElement!.dispatchEvent(
      new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }),
    );
  }, text);
  await app.prints(createHash("sha256").update(sent).digest("hex"));
});

test("R29: emoji, wide characters, combining marks, colours and links survive a snapshot", async () => {
  const rows = [
    "日本語のテキスト|",
    "emoji 🚀🎉 👩‍💻 🇫🇷 ❤️|",
    "e\u0301o\u0308 cafe\u0301|",
    "한국어 ｗｉｄｅ|",
    "\x1b[38;2;200;100;50;1mtrue colour\x1b[0m|",
    "\x1b]8;;https://example.org/\x07a link\x1b]8;;\x07|",
  ];
  writeFileSync(join(server.folder, "words"), rows.join("\r\n") + "\r\nEND\r\n");
  const app = await open();
  const id = await server.new("sh", "-c", "read x; cat words; exec cat");
  await app.visit(id);
  await app.type("\r");
  await app.prints(/^END$/m);
  // Compare cell by cell: text, width, colour and weight.
  const cells = () =>
    app.page.evaluate(() => {
      const { terminal } = document.querySelector('[data-testid="terminal"]') as unknown as {
        terminal: import("@xterm/xterm").Terminal;
      };
      const { active } = terminal.buffer;
      return Array.from({ length: 12 }, (_, row) => {
        const line = active.getLine(active.baseY + row)!;
        return Array.from({ length: 40 }, (_, column) => {
          const cell = line.getCell(column)!;
          return [cell.getChars() || " ", cell.getWidth(), cell.getFgColor(), cell.isBold(), cell.isUnderline()].join(
            " ",
          );
        });
      });
    });
  const before = await cells();
  await reload(app);
  await app.prints(/^END$/m);
  expect(await cells()).toEqual(before);
  const { text } = await app.terminalState();
  for (const word of ["日本語のテキスト|", "🚀🎉", "cafe\u0301|", "한국어 ｗｉｄｅ|", "true colour|", "a link|"])
    expect(text).toContain(word);
});
