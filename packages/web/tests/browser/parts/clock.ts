/** A page's time in the hands of a test: it stands still or moves on by the test's word, so that no time of the page's runs out by itself. */
import type { App } from "./app.ts";

/** What a page has whose time is held. */
export interface PageClock {
  /** Time stands still. What was to happen after some time waits; what was to happen in the next turn does. */
  stop(): void;
  /** Time that stands still moves on, and what is due by then happens, each thing at its time. */
  advance(ms: number): void;
  /** Time goes on from where it stands. */
  run(): void;
  /** The machine slept: only the time of day has moved on. */
  sleep(ms: number): void;
}

/** Runs in the page before anything else: holds its time, as `window.clock`. Timers that were set before a stop still run by real time. */
export function holdClock(): void {
  const [steady, set, clear] = [performance.now.bind(performance), setTimeout, clearTimeout];
  const begin = Date.now() - steady();
  const waiting = new Map<number, { at: number; act: () => void }>();
  let stopped: number | undefined;
  let [ahead, slept, last] = [0, 0, 0];
  const now = () => stopped ?? steady() + ahead;
  performance.now = now;
  Date.now = () => Math.floor(begin + now() + slept);
  const later = (act: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
    if (stopped === undefined || ms <= 0) return set(act, ms, ...args);
    waiting.set(--last, { at: stopped + ms, act: () => act(...args) });
    return last;
  };
  const happen = (id: number) => {
    const timer = waiting.get(id);
    waiting.delete(id);
    timer?.act();
  };
  const clock: PageClock = {
    stop: () => void (stopped = now()),
    advance: (ms) => {
      const end = now() + ms;
      for (;;) {
        const [next] = [...waiting].filter(([, { at }]) => at <= end).sort(([, one], [, other]) => one.at - other.at);
        if (!next) break;
        stopped = Math.max(now(), next[1].at);
        happen(next[0]);
      }
      stopped = end;
    },
    run: () => {
      ahead = now() - steady();
      stopped = undefined;
      for (const [id, { at }] of waiting) set(() => happen(id), at - now());
    },
    sleep: (ms) => void (slept += ms),
  };
  Object.assign(window, {
    clock,
    setTimeout: later,
    clearTimeout: (id: number) => waiting.delete(id) || clear(id),
  });
}

/** The time of a page that was opened with {@link holdClock}. */
export function clockOf({ page }: App): {
  [Name in keyof PageClock]: (...args: Parameters<PageClock[Name]>) => Promise<void>;
} {
  const tell = (name: keyof PageClock, ms = 0) =>
    page.evaluate(([name, ms]) => (window as unknown as { clock: PageClock }).clock[name](ms), [name, ms] as const);
  return {
    stop: () => tell("stop"),
    advance: (ms) => tell("advance", ms),
    run: () => tell("run"),
    sleep: (ms) => tell("sleep", ms),
  };
}
