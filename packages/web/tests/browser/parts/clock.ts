/** A page's clock under a test's control, so that the page's timeouts pass only when the test lets them. */
import type { App } from "./app.ts";

export interface PageClock {
  /** Stops the time. Timers that are set from now on do not fire, except those without a delay. */
  stop(): void;
  /** Moves a stopped clock on, and fires the timers that are due by then, in order. */
  advance(ms: number): void;
  /** Lets the time run again from where it stopped. */
  run(): void;
  /** Simulates a sleeping machine: only the time of day moves on. */
  sleep(ms: number): void;
}

/**
 * An init script that installs the clock as `window.clock`. Timers that were set before a stop still fire in
 * real time.
 */
export function controlClock(): void {
  const [realNow, set, clear] = [performance.now.bind(performance), setTimeout, clearTimeout];
  const start = Date.now() - realNow();
  const waiting = new Map<number, { at: number; callback: () => void }>();
  let stopped: number | undefined;
  let [ahead, slept, last] = [0, 0, 0];
  const now = () => stopped ?? realNow() + ahead;
  performance.now = now;
  Date.now = () => Math.floor(start + now() + slept);
  const setTimer = (callback: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) => {
    if (stopped === undefined || ms <= 0) return set(callback, ms, ...args);
    waiting.set(--last, { at: stopped + ms, callback: () => callback(...args) });
    return last;
  };
  const fire = (id: number) => {
    const timer = waiting.get(id);
    waiting.delete(id);
    timer?.callback();
  };
  const clock: PageClock = {
    stop: () => void (stopped = now()),
    advance: (ms) => {
      const end = now() + ms;
      for (;;) {
        const [next] = [...waiting].filter(([, { at }]) => at <= end).sort(([, one], [, other]) => one.at - other.at);
        if (!next) break;
        stopped = Math.max(now(), next[1].at);
        fire(next[0]);
      }
      stopped = end;
    },
    run: () => {
      ahead = now() - realNow();
      stopped = undefined;
      for (const [id, { at }] of waiting) set(() => fire(id), at - now());
    },
    sleep: (ms) => void (slept += ms),
  };
  Object.assign(window, {
    clock,
    setTimeout: setTimer,
    clearTimeout: (id: number) => waiting.delete(id) || clear(id),
  });
}

/** The clock of a page that was opened with {@link controlClock}. */
export function clockOf({ page }: App): {
  [Name in keyof PageClock]: (...args: Parameters<PageClock[Name]>) => Promise<void>;
} {
  const call = (name: keyof PageClock, ms = 0) =>
    page.evaluate(([name, ms]) => (window as unknown as { clock: PageClock }).clock[name](ms), [name, ms] as const);
  return {
    stop: () => call("stop"),
    advance: (ms) => call("advance", ms),
    run: () => call("run"),
    sleep: (ms) => call("sleep", ms),
  };
}
