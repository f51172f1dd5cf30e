/** What the dialog shows of the agents: which can be chosen, which is chosen first, and what is wrong with one. */
import type { AgentStatus } from "@bowline/client";

/** The agents that can be chosen, and those whose program certainly cannot be run, each in the order of the list. */
export function sortAgents(agents: readonly AgentStatus[]): {
  readonly usable: readonly AgentStatus[];
  readonly missing: readonly AgentStatus[];
} {
  return { usable: agents.filter((agent) => agent.available), missing: agents.filter((agent) => !agent.available) };
}

/** The agent that is chosen in a list: the wanted one, else the first without a problem, else the first. Empty if there is none. */
export function chooseAgent(agents: readonly AgentStatus[], wanted: string): string {
  const { usable } = sortAgents(agents);
  const found =
    usable.find(({ name }) => name === wanted) ?? usable.find(({ problem }) => problem === undefined) ?? usable[0];
  return found?.name ?? "";
}

/** A part of a text: words, or something to type or to look for. */
export interface TextPart {
  readonly text: string;
  readonly code: boolean;
}

/** A problem as a sentence. What is between backticks is code. */
export function problemParts(problem: string): readonly TextPart[] {
  const end = /[.!?]$/.test(problem) ? "" : ".";
  return `${problem.charAt(0).toUpperCase()}${problem.slice(1)}${end}`
    .split("`")
    .map((text, at) => ({ text, code: at % 2 === 1 }))
    .filter(({ text }) => text !== "");
}
