/** The hello message. */
import { expect, it } from "vitest";
import { makeHello } from "../src/core/link/hello.js";

const now = { conn: 1, cursor: undefined, size: undefined, key: undefined };
const scrollbackOf = (scrollback: unknown) =>
  makeHello({ client: "c".repeat(26), scrollback: scrollback as number }, now).scrollback;

it("R52: any scrollback option becomes a valid u32", () => {
  expect([undefined, null, NaN].map(scrollbackOf)).toEqual([1000, 1000, 1000]);
  expect([0, 1.5, 5000].map(scrollbackOf)).toEqual([0, 1, 5000]);
  expect([-5, -Infinity, Infinity, 2 ** 40].map(scrollbackOf)).toEqual([0, 0, 0xffff_ffff, 0xffff_ffff]);
});
