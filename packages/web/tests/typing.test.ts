/** Typing that is more than the connection takes at once. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Typing, WAITING_LIMIT } from "../src/terminal/typing.ts";

const OPEN = { name: "open" } as const;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("R16: input on its way", () => {
  it("goes out in order, in as many parts as the connection takes", () => {
    let room = 3;
    let got = "";
    const typing = new Typing(
      () => ({
        state: OPEN,
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
    const typing = new Typing(
      () => ({ state: OPEN, input: () => "read-only" }),
      (why) => refused.push(why),
    );
    typing.type("x");
    expect([refused, typing.waiting]).toEqual([["read-only"], 0]);
    const full = new Typing(
      () => ({ state: OPEN, input: () => "full" }),
      (why) => refused.push(why),
    );
    full.type(new Uint8Array(WAITING_LIMIT));
    full.type("x");
    expect(refused).toEqual(["read-only", "full"]);
    full.clear();
    expect([full.waiting, vi.getTimerCount()]).toEqual([0, 0]);
  });

  it("waits for the decision together with what was given back, so that no tail goes without its head", () => {
    let room = 0;
    let got = "";
    const typing = new Typing(
      () => ({
        state: OPEN,
        input(data) {
          const taken = Math.min(room, data.length);
          got += new TextDecoder().decode((data as Uint8Array).subarray(0, taken));
          room -= taken;
          return taken || "full";
        },
      }),
      () => expect.unreachable(),
    );
    const bytes = (text: string) => new TextEncoder().encode(text);
    const unsent = () => typing.unsent && [new TextDecoder().decode(typing.unsent.bytes), typing.unsent.doubtful];
    typing.type("the tail of a paste");
    typing.hold({ bytes: bytes("the head and "), doubtful: 3 });
    expect([unsent(), typing.waiting, vi.getTimerCount()]).toEqual([["the head and the tail of a paste", 3], 0, 0]);
    // Room comes, and nothing of it goes by itself; keys typed now do.
    room = 1000;
    vi.advanceTimersByTime(1000);
    typing.type("q");
    expect(got).toBe("q");
    typing.discard();
    vi.advanceTimersByTime(1000);
    expect([got, unsent()]).toEqual(["q", undefined]);
    // Twice, then sent: all of it, in order, as room comes.
    typing.hold({ bytes: bytes("one "), doubtful: 0 });
    typing.hold({ bytes: bytes("two"), doubtful: 0 });
    expect(unsent()).toEqual(["one two", 0]);
    [room, got] = [2, ""];
    typing.send();
    expect([got, typing.waiting, unsent()]).toEqual(["on", 5, undefined]);
    room = 1000;
    vi.advanceTimersByTime(1000);
    expect(got).toBe("one two");
  });

  it("counts what waits for a decision", () => {
    const refused: string[] = [];
    const typing = new Typing(
      () => ({ state: OPEN, input: () => "full" }),
      (why) => refused.push(why),
    );
    typing.hold({ bytes: new Uint8Array(WAITING_LIMIT), doubtful: 0 });
    typing.type("x");
    expect([refused, typing.waiting]).toEqual([["full"], 0]);
    typing.discard();
    typing.type("x");
    expect([refused, typing.waiting]).toEqual([["full"], 1]);
    typing.clear();
  });

  it("waits without a timer while there is no connection, and goes on with the next", () => {
    let state: "open" | "offline" = "offline";
    let got = "";
    const taker = () => ({
      state: { name: state },
      input: (data: string | Uint8Array) =>
        state === "open" ? ((got += new TextDecoder().decode(data as Uint8Array)), data.length) : "full",
    });
    const typing = new Typing(taker, () => expect.unreachable());
    typing.type("abc");
    typing.type("def");
    expect([got, typing.waiting, vi.getTimerCount()]).toEqual(["", 6, 0]);
    state = "open";
    typing.offer();
    expect([got, typing.waiting, vi.getTimerCount()]).toEqual(["abcdef", 0, 0]);
  });
});
