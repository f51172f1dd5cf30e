/** What a page adds: its lifecycle, storage that throws, and ids without a secure context. */
import { describe, expect, test } from "vitest";
import { openStore, pageLifecycle, type PageWindow, reloadedFrom } from "../src/browser/index.js";
import { isClientId, sleepAwareClock } from "../src/core/index.js";
import { clampSize, newClientId, TerminalConnection } from "../src/index.js";
import { World } from "./sim/world.js";

/** An event target that counts its listeners. */
class Counted extends EventTarget {
  count = 0;
  override addEventListener(...args: Parameters<EventTarget["addEventListener"]>): void {
    this.count += 1;
    super.addEventListener(...args);
  }
  override removeEventListener(...args: Parameters<EventTarget["removeEventListener"]>): void {
    this.count -= 1;
    super.removeEventListener(...args);
  }
}

function page() {
  const document = Object.assign(new Counted(), { visibilityState: "visible" });
  const window = Object.assign(new Counted(), { document });
  return { document, window, page: window as unknown as PageWindow };
}

describe("the page's lifecycle", () => {
  test("R11: each event is told, and an ordinary pageshow is not", () => {
    const { document, window, page: it } = page();
    const lifecycle = pageLifecycle(it);
    const told: string[] = [];
    const unsubscribe = lifecycle.subscribe((signal) => told.push(signal));
    document.visibilityState = "hidden";
    document.dispatchEvent(new Event("visibilitychange"));
    expect(lifecycle.hidden).toBe(true);
    document.dispatchEvent(new Event("freeze"));
    document.dispatchEvent(new Event("resume"));
    document.visibilityState = "visible";
    document.dispatchEvent(new Event("visibilitychange"));
    window.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: false }));
    window.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true }));
    window.dispatchEvent(new Event("online"));
    expect(told).toEqual(["hidden", "frozen", "resumed", "visible", "restored", "online"]);
    unsubscribe();
    unsubscribe();
    window.dispatchEvent(new Event("online"));
    expect(told).toHaveLength(6);
  });

  test("R15: a disposed connection leaves no listener on the page", () => {
    const { document, window, page: it } = page();
    const { environment } = new World();
    const connection = new TerminalConnection({
      environment: { ...environment, lifecycle: pageLifecycle(it) },
      target: () => new Promise(() => {}),
      on: {},
    });
    expect(document.count + window.count).toBe(5);
    connection.dispose();
    expect([document.count, window.count]).toEqual([0, 0]);
  });
});

describe("storage", () => {
  test("keeps things", () => {
    const kept = new Map<string, string>();
    const backing = {
      getItem: (name: string) => kept.get(name) ?? null,
      setItem: (name: string, value: string) => void kept.set(name, value),
      removeItem: (name: string) => void kept.delete(name),
    };
    const store = openStore("local", () => backing);
    store.set("key", "1");
    expect([store.get("key"), kept.get("key"), store.get("other")]).toEqual(["1", "1", undefined]);
    store.remove("key");
    expect([store.get("key"), kept.size]).toEqual([undefined, 0]);
  });

  const refuse = () => {
    throw new Error("SecurityError");
  };
  const full = { getItem: () => "old", setItem: refuse, removeItem: refuse };
  test.each([
    ["that cannot be opened", refuse],
    ["that is full", () => full],
  ])("R38: storage %s is memory", (_, open) => {
    const store = openStore("session", open);
    store.set("key", "1");
    expect(store.get("key")).toBe("1");
    store.remove("key");
    expect(store.get("key")).toBeUndefined();
  });

  test("R38: the id before a reload is `was`; nonsense is not", () => {
    const store = openStore("session", refuse);
    const [first, second] = [newClientId(), newClientId()];
    expect(reloadedFrom(first, store)).toBeUndefined();
    expect(reloadedFrom(second, store)).toBe(first);
    store.set("bowline.client", "A DUPLICATE?");
    expect(reloadedFrom(first, store)).toBeUndefined();
  });
});

describe("ids and sizes", () => {
  test("R38: a client id needs no secure context", () => {
    const { randomUUID } = crypto;
    try {
      Object.defineProperty(crypto, "randomUUID", { value: undefined, configurable: true });
      const ids = new Set(Array.from({ length: 100 }, () => newClientId()));
      expect(ids.size).toBe(100);
      for (const id of ids) expect([isClientId(id), id[14], "89ab".includes(id[19]!)]).toEqual([true, "4", true]);
    } finally {
      Object.defineProperty(crypto, "randomUUID", { value: randomUUID, configurable: true });
    }
  });

  test("R52: a window of any size is within bounds", () => {
    expect(clampSize({ cols: 0, rows: 9999 })).toEqual({ cols: 2, rows: 500 });
    expect(clampSize({ cols: NaN, rows: 24.7 })).toEqual({ cols: 2, rows: 24 });
  });
});

describe("the clock", () => {
  test("counts sleep, never goes back, and does not drift", () => {
    let [steady, wall] = [1_000, 50_000];
    const now = sleepAwareClock(
      () => steady,
      () => wall,
    );
    const start = now();
    for (let i = 0; i < 1000; i++) {
      steady += 0.4;
      wall += i % 5 < 2 ? 1 : 0;
      now();
    }
    expect(now() - start).toBeCloseTo(400);
    wall += 3_600_000; // The machine slept; only the wall clock saw it.
    expect(now() - start).toBeCloseTo(3_600_400, -1);
    wall -= 7_200_000; // Somebody set it back.
    expect(now() - start).toBeCloseTo(3_600_400, -1);
    steady += 1_000;
    wall += 1_000;
    expect(now() - start).toBeCloseTo(3_601_400, -1);
  });
});
