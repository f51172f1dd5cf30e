/** The list of agents, kept for the life of the page: looking for them may take 12 seconds. */
import type { AgentStatus } from "@bowline/client";

export class AgentList {
  /** Undefined until the first answer. */
  agents: readonly AgentStatus[] | undefined = $state.raw();
  /** Why the last request failed; empty if it did not. */
  problem = $state("");
  loading = $state(false);
  readonly #fetch: () => Promise<readonly AgentStatus[]>;
  readonly #explain: (error: unknown) => string;

  constructor(fetch: () => Promise<readonly AgentStatus[]>, explain: (error: unknown) => string) {
    this.#fetch = fetch;
    this.#explain = explain;
  }

  /** Requests the list, unless a request is under way. An earlier list stays until the answer. */
  async refresh(): Promise<void> {
    if (this.loading) return;
    this.loading = true;
    try {
      this.agents = await this.#fetch();
      this.problem = "";
    } catch (error) {
      this.problem = this.#explain(error);
    } finally {
      this.loading = false;
    }
  }
}
