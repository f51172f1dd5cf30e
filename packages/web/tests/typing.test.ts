import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Typing, WAITING_LIMIT } from "../src/terminal/typing.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("R16: input on its way", () => {
  it("goes out in order, in as many parts as the connection takes", () => {
    let room = 3;
    let got = "";
    const typing = new Typing(
      () => ({
        input(data) {
          const bytes = data as Uint8Array;
          if (room === 0) return "full";
          const taken = Math.min(room, bytes.length);
          room -= taken;
          got += new TextDecoder().decode(bytes.subarray(0, taken));
          return taken;
        },
      }),
      () => expect.unreachable(),
    );
    typing.type("abcdef");
    typing.type("ghi");
    expect([got, typing.waiting]).toEqual(["abc", 6]);
    vi.advanceTimersByTime(1000);
    expect(got).toBe("abc");
    room = 100;
    vi.advanceTimersByTime(1000);
    expect([got, typing.waiting, vi.getTimerCount()]).toEqual(["abcdefghi", 0, 0]);
  });

  it("is refused in words, and bounded", () => {
    const refused: string[] = [];
    const typing = new Typing(() => ({ input: () => "read-only" }), (why) => refused.push(why));
    typing.type("x");
    expect([refused, typing.waiting]).toEqual([["read-only"], 0]);
    const full = new Typing(() => ({ input: () => "full" }), (why) => refused.push(why));
    full.type(new Uint8Array(WAITING_LIMIT));
    full.type("x");
    expect(refused).toEqual(["read-only", "full"]);
    full.clear();
    expect([full.waiting, vi.getTimerCount()]).toEqual([0, 0]);
  });
});
