/** A page that shows a conversation: what it has must always be a part of the journal, in order and without a gap. */
import { expect } from "vitest";
import { readRecord } from "../../src/core/index.js";
import {
  AgentConnection,
  type AgentOptions,
  type AgentRecord,
  type ConnectionError,
  type ConnectionState,
  type ConversationState,
  type EventsConnection,
} from "../../src/index.js";
import type { Gateway } from "./gateway.js";
import type { Journal } from "./journal.js";
import type { World } from "./world.js";

export class Reader {
  readonly connection: AgentConnection;
  readonly states: ConnectionState[] = [];
  readonly errors: ConnectionError[] = [];
  records: AgentRecord[] = [];
  /** The epoch of its last event. */
  epoch: string | undefined;
  conversation: ConversationState | undefined;
  resets = 0;
  /** Counts callbacks. */
  calls = 0;
  /** The epoch of the last page that arrived. */
  #pageEpoch: string | undefined;

  constructor(
    world: World,
    gateway: Gateway,
    events: EventsConnection,
    session: string,
    more: Partial<AgentOptions> = {},
  ) {
    const on = {
      state: (state: ConnectionState) => void this.states.push(state),
      reset: ({ records }: { records: readonly AgentRecord[] }) => {
        this.resets += 1;
        this.epoch = this.#pageEpoch;
        this.records = [...records];
      },
      older: ({ records }: { records: readonly AgentRecord[] }) => {
        if (records.length) expect(records.at(-1)!.seq + 1, "older events end where the others begin").toBe(this.start);
        this.records.unshift(...records);
      },
      events: (records: readonly AgentRecord[]) => {
        for (const record of records) {
          expect(record.from ?? record.seq, "events continue").toBe(this.end);
          this.records.push(record);
          const { event } = record;
          if (event.type === "started" || event.type === "repaired") this.epoch = event.epoch;
        }
      },
      conversation: (state: ConversationState) => void (this.conversation = state),
      error: (error: ConnectionError) => void this.errors.push(error),
    };
    const counted = Object.fromEntries(
      Object.entries(on).map(([name, call]) => [name, (value: never) => (this.calls++, call(value))]),
    );
    this.connection = new AgentConnection({
      environment: world.environment,
      api: {
        history: async (...request) => {
          const page = await gateway.history(...request);
          this.#pageEpoch = page.epoch;
          return page;
        },
      },
      events,
      session,
      on: counted,
      ...more,
    });
  }

  /** The first number that it has, and the one after the last. */
  get start(): number | undefined {
    const first = this.records[0];
    return first && (first.from ?? first.seq);
  }

  get end(): number | undefined {
    const last = this.records.at(-1);
    return last && last.seq + 1;
  }

  /** The whole part of the journal that it should have, and the state at its end. */
  expectUpToDate(journal: Journal, why: string): void {
    expect(this.connection.state.name, why).toBe("open");
    expect(this.end, why).toBe(journal.end);
    const expected = this.records.map(({ seq, from = seq }) => journal.record(from, seq + 1, Infinity));
    expect(this.records, why).toEqual(expected.map(readRecord));
    expect(this.conversation, why).toEqual(journal.state());
    expect(this.connection.conversation, why).toBe(this.conversation);
  }

  get stateNames(): string[] {
    return this.states.map(({ name }) => name);
  }
}
