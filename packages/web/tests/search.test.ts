/** Tests what a search in a terminal says. */
import { expect, test } from "vitest";
import { isPattern, matchText } from "../src/terminal/search.ts";

test("a search says which match is shown, of how many", () => {
  expect(matchText({ resultIndex: -1, resultCount: 0 })).toBe("No results");
  expect(matchText({ resultIndex: 0, resultCount: 1 })).toBe("1 of 1");
  expect(matchText({ resultIndex: 41, resultCount: 999 })).toBe("42 of 999");
});

test("beyond the limit, a search says that there are more, and no wrong position", () => {
  expect(matchText({ resultIndex: 41, resultCount: 1000 })).toBe("42 of 1,000+");
  expect(matchText({ resultIndex: -1, resultCount: 1000 })).toBe("1,000+ results");
});

test("an unfinished regular expression is not searched for", () => {
  expect(isPattern("a(b|c)+")).toBe(true);
  expect(isPattern("a(b")).toBe(false);
  expect(isPattern("[")).toBe(false);
});
