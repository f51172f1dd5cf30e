/** Tests which click opens a link in a terminal, and how links are shown. */
import { expect, test } from "vitest";
import { opensLink, shownLink } from "../src/terminal/links.ts";

const plain = { ctrlKey: false, metaKey: false };

test("R27: a link opens with Ctrl, on a Mac with Command, and on a tap", () => {
  expect(opensLink(plain, "mouse", false)).toBe(false);
  expect(opensLink({ ...plain, ctrlKey: true }, "mouse", false)).toBe(true);
  expect(opensLink({ ...plain, metaKey: true }, "mouse", false)).toBe(false);
  // On a Mac, Ctrl and a click open the context menu.
  expect(opensLink({ ...plain, ctrlKey: true }, "mouse", true)).toBe(false);
  expect(opensLink({ ...plain, metaKey: true }, "mouse", true)).toBe(true);
  expect(opensLink(plain, "touch", false)).toBe(true);
  expect(opensLink(plain, "pen", false)).toBe(false);
});

test("R27: a shown link has no characters that hide where it leads", () => {
  expect(shownLink("https://example.org/a?b#c")).toBe("https://example.org/a?b#c");
  expect(shownLink("https://ex\u0430mple.org/")).toBe("https://xn--exmple-4nf.org/");
  expect(shownLink("https://example.org/\u202egpj.exe")).toBe("https://example.org/%E2%80%AEgpj.exe");
  expect(shownLink("no \u202elink")).toBe("no%20%E2%80%AElink");
});
