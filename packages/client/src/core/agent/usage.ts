/** Adds up what an agent has used: tokens, money, and room in its context. */
import type { Tokens, Used } from "../wire.js";

/** The sum of what was used before and later. The context is the latest one. */
export function addUsed(before: Used | undefined, later: Used): Used {
  const cost = later.cost === undefined ? before?.cost : roundedCost((before?.cost ?? 0) + later.cost);
  const context = later.context ?? before?.context;
  return {
    tokens: before ? addTokens(before.tokens, later.tokens) : later.tokens,
    ...(cost === undefined ? {} : { cost }),
    ...(context === undefined ? {} : { context }),
  };
}

/** A cost without the noise of sums and differences. What makes no sense as one is 0. */
export function roundedCost(amount: number): number {
  const rounded = Math.round(amount * 1e9) / 1e9;
  return Number.isFinite(rounded) && rounded > 0 ? rounded : 0;
}

function addTokens(a: Tokens, b: Tokens): Tokens {
  // The server writes no larger number either.
  const sum = (a: number, b: number) => Math.min(a + b, Number.MAX_SAFE_INTEGER);
  return {
    input: sum(a.input, b.input),
    output: sum(a.output, b.output),
    cache_read: sum(a.cache_read, b.cache_read),
    cache_write: sum(a.cache_write, b.cache_write),
  };
}
