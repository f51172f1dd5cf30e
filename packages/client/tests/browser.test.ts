/** The page: its lifecycle, storage that throws, ids without a secure context, and the clock. */
import { describe, expect, test } from "vitest";
import { openStore, pageLifecycle, type PageWindow, previousClientId } from "../src/browser/index.js";
import { isClientId, sleepAwareClock } from "../src/core/index.js";
import { clampSize, newClientId, TerminalConnection } from "../src/index.js";
import { World } from "./sim/world.js";

/** An event target that counts its listeners. */
class CountingTarget extends EventTarget {
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

function fakePage() {
  const document = Object.assign(new CountingTarget(), { visibilityState: "visible" });
  const window = Object.assign(new CountingTarget(), { document });
  return { document, window, page: window as unknown as PageWindow };
}

describe("the page's lifecycle", () => {
  test("R11: each event is reported, except the pageshow of an ordinary load", () => {
    const { document, window, page } = fakePage();
    const lifecycle = pageLifecycle(page);
    const signals: string[] = [];
    const unsubscribe = lifecycle.subscribe((signal) => signals.push(signal));
    document.visibilityState = "hidden";
    document.dispatchEvent(new Event("visibilitychange"));
    expect(lifecycle.hidden).toBe(true);
    document.dispatchEvent(new Event("freeze"));
    document.dispatchEvent(new Event("resume"));
    document.visibilityState = "visible";
    document.dispatchEvent(new Event("visibilitychange"));
    window.dispatchEvent(new Event("pagehide"));
    window.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: false }));
    window.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true }));
    window.dispatchEvent(new Event("online"));
    window.dispatchEvent(new Event("offline"));
    expect(signals).toEqual(["hidden", "frozen", "resumed", "visible", "left", "restored", "online", "offline"]);
    unsubscribe();
    unsubscribe();
    window.dispatchEvent(new Event("online"));
    expect(signals).toHaveLength(8);
  });

  test("a page without a network says so", () => {
    const { window, page } = fakePage();
    expect(pageLifecycle(page).offline).toBe(false);
    Object.assign(window, { navigator: { onLine: false } });
    expect(pageLifecycle(page).offline).toBe(true);
  });

  test("R15: a disposed connection leaves no listener on the page", () => {
    const { document, window, page } = fakePage();
    const { environment } = new World();
    const connection = new TerminalConnection({
      environment: { ...environment, lifecycle: pageLifecycle(page) },
      target: () => new Promise(() => {}),
      on: {},
    });
    expect(document.count + window.count).toBe(7);
    connection.dispose();
    expect([document.count, window.count]).toEqual([0, 0]);
  });
});

describe("storage", () => {
  test("stores, reads and removes values", () => {
    const values = new Map<string, string>();
    const backing = {
      getItem: (name: string) => values.get(name) ?? null,
      setItem: (name: string, value: string) => void values.set(name, value),
      removeItem: (name: string) => void values.delete(name),
    };
    const store = openStore("local", () => backing);
    store.set("key", "1");
    expect([store.get("key"), values.get("key"), store.get("other")]).toEqual(["1", "1", undefined]);
    store.remove("key");
    expect([store.get("key"), values.size]).toEqual([undefined, 0]);
  });

  const refuse = () => {
    throw new Error("SecurityError");
  };
  const full = { getItem: () => "old", setItem: refuse, removeItem: refuse };
  test.each([
    ["that cannot be opened", refuse],
    ["that is full", () => full],
  ])("R38: values are kept in memory with storage %s", (_, open) => {
    const store = openStore("session", open);
    store.set("key", "1");
    expect(store.get("key")).toBe("1");
    store.remove("key");
    expect(store.get("key")).toBeUndefined();
  });

  test("R38: previousClientId returns the client id from before a reload, and ignores an invalid one", () => {
    const store = openStore("session", refuse);
    const [first, second] = [newClientId(), newClientId()];
    expect(previousClientId(first, store)).toBeUndefined();
    expect(previousClientId(second, store)).toBe(first);
    store.set("bowline.client", "A DUPLICATE?");
    expect(previousClientId(first, store)).toBeUndefined();
  });
});

describe("ids and sizes", () => {
  test("R38: client ids can be created without a secure context", () => {
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

  test("R52: clampSize brings any window size within bounds", () => {
    expect(clampSize({ cols: 0, rows: 9999 })).toEqual({ cols: 2, rows: 500 });
    expect(clampSize({ cols: NaN, rows: 24.7 })).toEqual({ cols: 2, rows: 24 });
  });
});

describe("the clock", () => {
  test("includes sleep, never goes back, and does not drift", () => {
    let [monotonic, wall] = [1_000, 50_000];
    const now = sleepAwareClock(
      () => monotonic,
      () => wall,
    );
    const start = now();
    for (let i = 0; i < 1000; i++) {
      monotonic += 0.4;
      wall += i % 5 < 2 ? 1 : 0;
      now();
    }
    expect(now() - start).toBeCloseTo(400);
    wall += 3_600_000; // The machine slept: only the wall clock went on.
    expect(now() - start).toBeCloseTo(3_600_400, -1);
    wall -= 7_200_000; // The wall clock was set back.
    expect(now() - start).toBeCloseTo(3_600_400, -1);
    monotonic += 1_000;
    wall += 1_000;
    expect(now() - start).toBeCloseTo(3_601_400, -1);
  });
});
