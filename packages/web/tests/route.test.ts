/** Tests routes and login codes in URL fragments. */
import { describe, expect, it } from "vitest";
import { hrefOf, loginCode, parseRoute, codeFromPaste, type Route } from "../src/state/route.ts";

describe("routes", () => {
  it("round-trip through a fragment", () => {
    const routes: Route[] = [
      { name: "board" },
      { name: "session", id: "k3v9x0q2m7aa" },
      { name: "session", id: "a/b c" },
      { name: "approvals" },
      { name: "settings" },
      { name: "help" },
    ];
    for (const route of routes) expect(parseRoute(hrefOf(route))).toEqual(route);
  });

  it("fall back to the board", () => {
    for (const hash of [
      "",
      "#",
      "#/",
      "#/s",
      "#/s/",
      "#/s/a/b",
      "#/nowhere",
      "#login=x",
      "#/settings/x",
      "#/s/%E0%A4%A/x",
    ]) {
      expect(parseRoute(hash), hash).toEqual({ name: "board" });
    }
    expect(parseRoute("#/s/%E0%A4%A")).toEqual({ name: "session", id: "%E0%A4%A" });
  });
});

describe("R48: login links", () => {
  it("have their code in the fragment", () => {
    expect(loginCode("#login=abc-DEF_1")).toBe("abc-DEF_1");
    for (const hash of ["", "#", "#/s/x", "#login=", "#nologin=1"]) expect(loginCode(hash), hash).toBeUndefined();
  });

  it("can be pasted as a link, a fragment or a code", () => {
    for (const text of [
      "https://host/sub/#login=AB12",
      "  http://h:7433/#login=AB12\n",
      "#login=AB12",
      "login=AB12",
      "AB12",
    ]) {
      expect(codeFromPaste(text), text).toBe("AB12");
    }
    for (const text of ["", "  ", "https://host/", "https://host/#/s/x", "two words"])
      expect(codeFromPaste(text), text).toBeUndefined();
  });
});
