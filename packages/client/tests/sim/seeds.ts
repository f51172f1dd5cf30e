/** Runs simulations with many seeds, and says how to replay one that fails. */
import { test } from "vitest";

interface Simulation {
  /** What happened, one line for each step. */
  readonly trace: readonly string[];
  run(): Promise<void>;
}

/** Defines a test that runs `count` seeds; `BOWLINE_SEEDS` sets another number, and `BOWLINE_SEED` the only one to run. */
export function testSeeds(count: number, simulation: (seed: number) => Simulation): void {
  const { BOWLINE_SEED: only, BOWLINE_SEEDS: many = count } = process.env;
  const seeds = only === undefined ? Array.from({ length: Number(many) }, (_, i) => i + 1) : [Number(only)];

  test(`${seeds.length} seeds`, { timeout: 120_000 }, async () => {
    for (const seed of seeds) {
      const run = simulation(seed);
      try {
        await run.run();
      } catch (error) {
        const replay = `BOWLINE_SEED=${seed} npm test`;
        console.error(`Seed ${seed} failed. To replay it alone: ${replay}\n${run.trace.join("\n")}`);
        throw error;
      }
    }
  });
}
