/** What a viewer says first. */
import { expect, it } from "vitest";
import { makeHello } from "../src/core/link/hello.js";

const now = { conn: 1, cursor: undefined, size: undefined, key: undefined };
const linesOf = (scrollback: unknown) =>
  makeHello({ client: "c".repeat(26), scrollback: scrollback as number }, now).scrollback;

it("R52: lines of scrollback are a number that the wire has, whatever a program gives", () => {
  expect([undefined, null, NaN].map(linesOf)).toEqual([1000, 1000, 1000]);
  expect([0, 1.5, 5000].map(linesOf)).toEqual([0, 1, 5000]);
  expect([-5, -Infinity, Infinity, 2 ** 40].map(linesOf)).toEqual([0, 0, 0xffff_ffff, 0xffff_ffff]);
});
