/** Chance that can be replayed. */

/** A small generator (mulberry32) from a seed. */
export class Rng {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** In [0, 1). */
  next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };

  /** An integer in [0, below). */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  /** True once in `n`. */
  once(n: number): boolean {
    return this.below(n) === 0;
  }

  /** One of them. */
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}
