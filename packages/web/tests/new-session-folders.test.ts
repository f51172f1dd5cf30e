/** Tests the folder picker of the dialog for new sessions. */
import type { FolderList } from "@bowline/client";
import { describe, expect, it } from "vitest";
import { childPath, crumbsOf, folderOptions, plainText } from "../src/board/new/folders.ts";
import { FolderBrowser } from "../src/board/new/folders.svelte.ts";

function list(path: string, names: readonly string[] = [], changes: Partial<FolderList> = {}): FolderList {
  const folders = names.map((name) => ({ name, git: name === "bowline" }));
  return { path, parent: null, roots: ["/home/me", "/srv"], folders, truncated: false, ...changes };
}

describe("R54: the list of folders", () => {
  it("joins paths, also below the root of the file system", () => {
    expect([childPath("/", "srv"), childPath("/srv", "a b")]).toEqual(["/srv", "/srv/a b"]);
  });

  it("shows the way from the longest root that has the folder", () => {
    const paths = (path: string, roots: string[]) => crumbsOf({ path, roots }).map((crumb) => crumb.path);
    expect(paths("/home/me/src/app", ["/home/me", "/srv"])).toEqual(["/home/me", "/home/me/src", "/home/me/src/app"]);
    expect(paths("/home/me/src", ["/", "/home/me"])).toEqual(["/home/me", "/home/me/src"]);
    expect(paths("/home/meyer", ["/home/me", "/"])).toEqual(["/", "/home", "/home/meyer"]);
    expect(paths("/", ["/"])).toEqual(["/"]);
    expect(paths("/elsewhere", ["/home/me"])).toEqual(["/elsewhere"]);
    expect(crumbsOf({ path: "/home/me/src", roots: ["/home/me"] }).map(({ name }) => name)).toEqual([
      "/home/me",
      "src",
    ]);
  });

  it("offers recent folders, other roots, and the folders in the open one", () => {
    const options = folderOptions(list("/home/me/src", ["app", "bowline"]), ["/tmp/x"], "");
    expect(options.map(({ group, path, git }) => [group, path, git])).toEqual([
      ["recent", "/tmp/x", false],
      ["place", "/srv", false],
      ["folder", "/home/me/src/app", false],
      ["folder", "/home/me/src/bowline", true],
    ]);
    expect(folderOptions(undefined, ["/tmp/x"], "").map(({ path }) => path)).toEqual(["/tmp/x"]);
  });

  it("filters all of them without regard to case, those that begin with the filter first", () => {
    const found = (filter: string) =>
      folderOptions(list("/home/me", ["My-app", "app", "apple", "docs"]), ["/srv/App", "/srv/x"], filter);
    expect(found(" APP").map(({ path }) => path)).toEqual([
      "/srv/App",
      "/home/me/app",
      "/home/me/apple",
      "/home/me/My-app",
    ]);
    expect(found("srv").map(({ group }) => group)).toEqual(["recent", "recent", "place"]);
    expect(found("nothing")).toEqual([]);
  });

  it("makes characters visible that would hide or reorder others", () => {
    expect(plainText("a\u202eb\u0007c\u200bd\n")).toBe("a\ufffdb\ufffdc\ufffdd\ufffd");
    expect(plainText("日本 ü")).toBe("日本 ü");
    const [option] = folderOptions(list("/", ["x\u202ey"], { roots: ["/"] }), [], "");
    // The path is what the server knows.
    expect([option?.label, option?.path]).toEqual(["x\ufffdy", "/x\u202ey"]);
  });
});

/** A server whose answers a test gives in any order. */
function server() {
  const requests: {
    readonly path: string | undefined;
    readonly hidden: boolean;
    readonly answer: (list: FolderList) => void;
    readonly refuse: (message: string) => void;
  }[] = [];
  const browser = new FolderBrowser(
    (path, hidden) =>
      new Promise((answer, reject) =>
        requests.push({ path, hidden, answer, refuse: (message) => reject(new Error(message)) }),
      ),
    (error) => (error as Error).message,
  );
  return { browser, requests };
}

describe("R54: going through folders", () => {
  it("keeps the open folder until the next one comes, and when that fails", async () => {
    const { browser, requests } = server();
    const first = browser.open("~");
    expect(browser.loading).toBe(true);
    requests[0]!.answer(list("/home/me"));
    expect((await first)?.path).toBe("/home/me");
    const next = browser.open("/home/me/secret");
    expect([browser.list?.path, browser.loading]).toEqual(["/home/me", true]);
    expect(browser.usable, "the user may mean either").toBeUndefined();
    requests[1]!.refuse("permission denied");
    expect(await next).toBeUndefined();
    expect([browser.list?.path, browser.problem, browser.loading]).toEqual(["/home/me", "permission denied", false]);
    expect(browser.usable?.path).toBe("/home/me");
    const again = browser.retry();
    expect(requests[2]!.path).toBe("/home/me/secret");
    requests[2]!.answer(list("/home/me/secret"));
    await again;
    expect([browser.list?.path, browser.problem]).toEqual(["/home/me/secret", ""]);
  });

  it("ignores an answer that another request has overtaken", async () => {
    const { browser, requests } = server();
    const slow = browser.open("/slow");
    const fast = browser.open("/fast");
    requests[1]!.answer(list("/fast"));
    await fast;
    requests[0]!.answer(list("/slow"));
    expect(await slow).toBeUndefined();
    expect([browser.list?.path, browser.loading]).toEqual(["/fast", false]);
    const failing = browser.open("/failing");
    const last = browser.open("/last");
    requests[2]!.refuse("too late");
    await failing;
    expect([browser.problem, browser.loading]).toEqual(["", true]);
    requests[3]!.answer(list("/last"));
    await last;
    expect(browser.list?.path).toBe("/last");
  });

  it("begins in the first root, and says why, if the folder to begin with cannot be listed", async () => {
    const { browser, requests } = server();
    const first = browser.open("/deleted");
    requests[0]!.refuse("there is no folder /deleted");
    await Promise.resolve();
    await Promise.resolve();
    expect(requests[1]!.path).toBeUndefined();
    requests[1]!.answer(list("/home/me"));
    expect(await first).toBeUndefined();
    expect([browser.list?.path, browser.problem]).toEqual(["/home/me", "there is no folder /deleted"]);
  });

  it("lists hidden folders of the open one", async () => {
    const { browser, requests } = server();
    const first = browser.open("~");
    requests[0]!.answer(list("/home/me"));
    await first;
    browser.showHidden(true);
    expect([requests[1]!.path, requests[1]!.hidden]).toEqual(["/home/me", true]);
    browser.showHidden(false);
    expect(requests[2]!.hidden).toBe(false);
  });
});
