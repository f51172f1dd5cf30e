/** Programs as people use them, over a reload: the screen that comes back is the screen that was left. */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type App, PHONE, type Shown, stage } from "./parts/app.ts";
import { until } from "./parts/until.ts";

const { world, open } = stage();

/** Waits until the screen is drawn to its end: programs print in pieces. */
function draws(app: App, end: (shown: Shown) => boolean): Promise<Shown> {
  const look = async () => {
    const shown = await app.shown();
    return end(shown) ? shown : undefined;
  };
  return until("the program has drawn", look, async () => JSON.stringify(await app.shown()));
}

/** Leaves the page and loads it again. */
async function reload(app: App): Promise<void> {
  await app.page.reload();
  await app.state("open");
}

test.each([
  ["a laptop", undefined],
  ["a phone", PHONE],
])("R22: vim is on the same screen after a reload, and goes on, on %s", async (_, screen) => {
  const file = join(world.folder, "poem.txt");
  writeFileSync(file, Array.from({ length: 200 }, (_, row) => `row ${row + 1} of the poem`).join("\n") + "\n");
  const app = await open(screen ? { screen } : {});
  await app.visit(await world.new("vim", "-u", "NONE", "-N", "+set ruler", file));
  await app.prints("row 1 of the poem");
  await app.type("42G2W");
  // Last of all it puts the cursor into its place.
  const drawn = ({ text, screen, cursor: [column, row] }: Shown) =>
    text.includes("42,8") && screen[row]!.startsWith("row 42 ") && column === 7;
  const before = await draws(app, drawn);
  expect(before.buffer).toBe("alternate");
  await reload(app);
  expect(await draws(app, drawn)).toEqual(before);
  // The keys have the meaning that vim gave them: arrows of the application kind, then an insertion.
  await app.focus();
  await app.page.keyboard.press("ArrowDown");
  await app.prints("43,8");
  await app.type("iHERE \x1b:wq\r");
  await app.page.waitForSelector('[data-testid="exit"]:has-text("Exited normally")');
  expect(readFileSync(file, "utf8").split("\n")[42]).toBe("row 43 HERE of the poem");
});

test("R22: less is on the same page after a reload, and leaves the shell's screen as it was", async () => {
  const app = await open();
  await app.visit(await world.shell());
  await app.prints("ready>");
  await app.type("echo beneath $((7 * 7)); seq 5000 | less\r");
  await app.prints(/^1$/m);
  await app.type("4000g");
  // Last of all it asks, at the end of a full page.
  const drawn = ({ screen, rows, cursor: [column, row] }: Shown) =>
    screen[0] === "4000" &&
    screen[rows - 2] === String(4000 + rows - 2) &&
    screen[rows - 1] === ":" &&
    column === 1 &&
    row === rows - 1;
  const before = await draws(app, drawn);
  expect(before.buffer).toBe("alternate");
  await reload(app);
  expect(await draws(app, drawn)).toEqual(before);
  await app.type("q");
  const { buffer, text } = await app.prints("beneath 49");
  expect(buffer).toBe("normal");
  expect(text).not.toMatch(/^4000$/m);
});

test("R22: htop is on the session's screen after a reload", async () => {
  const app = await open();
  const id = await world.new("htop", "-d", "100");
  await app.visit(id);
  await app.prints("F10");
  await reload(app);
  await app.prints("F10");
  // It draws all the time: the page and the session agree in between.
  const trimmed = (lines: readonly string[]) =>
    lines
      .map((line) => line.trimEnd())
      .join("\n")
      .trimEnd();
  const same = async () => {
    const shown = await app.shown();
    return shown.buffer === "alternate" && trimmed(shown.screen) === trimmed((await world.screen(id)).split("\n"));
  };
  await until("the page shows what the session shows", same);
  await app.type("q");
  await app.page.waitForSelector('[data-testid="exit"]:has-text("Exited normally")');
});

test("R22: after 10 MB of output a reload shows the exact end of it, whatever came before", async () => {
  const app = await open();
  const id = await world.new("sh", "-c", "seq -f 'number %.0f' 700000; echo END; exec cat");
  await app.visit(id);
  await app.prints(/^END$/m);
  await app.page.addInitScript(() => {
    const look = () => {
      const { terminal } = (document.querySelector('[data-testid="terminal"]') ?? {}) as {
        terminal?: import("@xterm/xterm").Terminal;
      };
      const active = terminal?.buffer.active;
      const shown =
        active &&
        Array.from({ length: terminal.rows }, (_, row) => active.getLine(active.baseY + row)?.translateToString(true));
      if (shown?.includes("END")) performance.mark("painted");
      else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
  });
  await reload(app);
  const painted = await until("the first paint", () =>
    app.page.evaluate(() => performance.getEntriesByName("painted")[0]?.startTime),
  );
  console.log(`10 MB of output, then a reload: the screen is there ${Math.round(painted)} ms after the load began`);
  const { text } = await app.prints(/^END$/m);
  const numbers = [...text.matchAll(/^number (\d+)$/gm)].map((match) => Number(match[1]));
  expect(numbers.length).toBeGreaterThan(500);
  expect(numbers.at(-1)).toBe(700000);
  expect(numbers.findIndex((number, at) => number !== numbers[0]! + at)).toBe(-1);
});

test("R25: Ctrl-C stops a flood that the page cannot follow, and the shell is there", async () => {
  const app = await open();
  await app.visit(await world.shell());
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
    await world.new(
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
  writeFileSync(join(world.folder, "words"), rows.join("\r\n") + "\r\nEND\r\n");
  const app = await open();
  const id = await world.new("sh", "-c", "read x; cat words; exec cat");
  await app.visit(id);
  await app.type("\r");
  await app.prints(/^END$/m);
  // Cell by cell: what is in it, how wide it is, its colour and weight.
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
  const { text } = await app.shown();
  for (const word of ["日本語のテキスト|", "🚀🎉", "cafe\u0301|", "한국어 ｗｉｄｅ|", "true colour|", "a link|"])
    expect(text).toContain(word);
});
