/** Pictures of prompts: each is fetched once, and only a bounded number is kept. */
import { beforeEach, expect, test } from "vitest";
import { MAX_PICTURES, Pictures } from "../src/conversation/items/pictures.ts";

let fetched: string[];
let revoked: string[];
let broken: boolean;
let made: number;
let pictures: Pictures;

beforeEach(() => {
  fetched = [];
  revoked = [];
  broken = false;
  made = 0;
  pictures = new Pictures({
    fetch: async (session, id) => {
      fetched.push(`${session}/${id}`);
      if (broken) throw new Error("no answer");
      return new Blob();
    },
    makeUrl: () => `blob:${++made}`,
    revokeUrl: (url) => revoked.push(url),
  });
});

async function showBriefly(id: string) {
  const shown = pictures.show("s", id);
  await shown.loaded;
  shown.release();
}

test("a picture that moves to another component is there at once", async () => {
  const first = pictures.show("s", "a.png");
  const second = pictures.show("s", "a.png");
  expect(first.url).toBeUndefined();
  expect(await Promise.all([first.loaded, second.loaded])).toEqual(["blob:1", "blob:1"]);
  first.release();
  second.release();
  expect(pictures.show("s", "a.png").url).toBe("blob:1");
  expect(pictures.show("other", "a.png").url, "another session's is another picture").toBeUndefined();
  await Promise.resolve();
  expect(fetched).toEqual(["s/a.png", "other/a.png"]);
  expect(revoked).toEqual([]);
});

test("those shown longest ago make room, but not while they are shown", async () => {
  const shown = pictures.show("s", "shown.png");
  await shown.loaded;
  await showBriefly("old.png");
  for (let i = 0; i < MAX_PICTURES - 2; i++) await showBriefly(`${i}.png`);
  expect(revoked).toEqual([]);
  await showBriefly("one more.png");
  expect(revoked).toEqual(["blob:2"]);
  expect(pictures.show("s", "old.png").url).toBeUndefined();
  expect(pictures.show("s", "shown.png").url).toBe("blob:1");
});

test("pictures beyond the limit are dropped as soon as they are not shown", async () => {
  const shown = Array.from({ length: MAX_PICTURES + 2 }, (_, i) => pictures.show("s", `${i}.png`));
  await Promise.all(shown.map(({ loaded }) => loaded));
  expect(revoked).toEqual([]);
  for (const { release } of shown) release();
  expect(revoked).toEqual(["blob:1", "blob:2"]);
});

test("a picture that was given up while it was loading is kept within the limit", async () => {
  const given = pictures.show("s", "given up.png");
  given.release();
  await given.loaded;
  expect(pictures.show("s", "given up.png").url).toBe("blob:1");
});

test("a failure is not kept", async () => {
  broken = true;
  const failed = pictures.show("s", "a.png");
  await expect(failed.loaded).rejects.toThrow("no answer");
  failed.release();
  broken = false;
  const again = pictures.show("s", "a.png");
  expect(await again.loaded).toBe("blob:1");
  again.release();
  expect(pictures.show("s", "a.png").url).toBe("blob:1");
});
