/** Tests how older output is read from the log of a session. */
import { ApiError, type LogPart } from "@bowline/client";
import { expect, test } from "vitest";
import { CHUNK, logText, readBefore, textBefore } from "../src/terminal/older.ts";

const encode = (text: string) => new TextEncoder().encode(text);

/** A log that keeps the bytes from `oldest` on. */
function logFrom(oldest: number, bytes: Uint8Array) {
  return async ({ from, to }: { from?: number; to?: number }): Promise<LogPart> => {
    const [start, end] = [from ?? oldest, to ?? oldest + bytes.length];
    if (start < oldest || end < oldest || end > oldest + bytes.length)
      throw new ApiError(416, "out_of_range", "not kept", { fromGateway: true });
    return { from: start, bytes: bytes.slice(start - oldest, end - oldest) };
  };
}

test("chunks of the log join without a gap or an overlap, and begin with lines", async () => {
  const lines = Array.from({ length: 150_000 }, (_, row) => `line ${row}\r\n`).join("");
  const bytes = encode(lines);
  const read = logFrom(0, bytes);
  const parts: string[] = [];
  for (let to = bytes.length, oldest = false; !oldest;) {
    const chunk = (await readBefore(to, 0, read))!;
    const text = new TextDecoder().decode(chunk.bytes);
    expect(text.startsWith("line ")).toBe(true);
    expect(chunk.bytes.length).toBeLessThanOrEqual(CHUNK);
    parts.unshift(text);
    ({ from: to, oldest } = chunk);
  }
  expect(parts.length).toBeGreaterThan(2);
  expect(parts.join("")).toBe(lines);
});

test("where the log begins, older output is no longer kept", async () => {
  const read = logFrom(1000, encode("kept\r\n"));
  expect(await readBefore(1006, 0, read)).toMatchObject({ from: 1000, oldest: true });
  expect(await readBefore(900, 0, read)).toBeUndefined();
  const refused = async () => {
    throw new ApiError(503, "unreachable", "later");
  };
  await expect(readBefore(900, 0, refused)).rejects.toThrow("later");
});

test("the text of a log is what a terminal shows", async () => {
  const log = "one\r\n\x1b[1;31mtwo\x1b[0m\r\n10%\r\x1b[K20%\r\ntyq\bpo\r\n\x1b[6n\x1b]0;title\x07end\r\n\r\n";
  expect(await logText(encode(log), 80)).toBe("one\ntwo\n20%\ntypo\nend");
  expect(await logText(encode("a long line that wraps\r\nnext"), 10)).toBe("a long line that wraps\nnext");
  // A program on the alternate screen leaves nothing.
  expect(await logText(encode("before\r\n\x1b[?1049hfull screen\x1b[?1049lafter"), 80)).toBe("before\nafter");
});

test("older output ends where the terminal begins", () => {
  expect(textBefore("1\n2\n3\n4", "3\n4")).toBe("1\n2");
  expect(textBefore("3\n4", "3\n4")).toBe("");
  expect(textBefore("13\n4", "3\n4")).toBeUndefined();
  expect(textBefore("1\n2", "")).toBeUndefined();
});
