/** The terminal of a test: it shows bytes, may render them slowly, and records every callback. */
import {
  type ConnectionError,
  type ConnectionState,
  TerminalConnection,
  type TerminalOptions,
  type Unsent,
} from "../../src/index.js";
import type { World } from "./world.js";

export class Viewer {
  readonly connection: TerminalConnection;
  readonly states: ConnectionState[] = [];
  readonly errors: ConnectionError[] = [];
  readonly unsent: Unsent[] = [];
  readonly events: string[] = [];
  /** The bytes since the last reset of the terminal. */
  shown: number[] = [];
  /** Callbacks for output that is not rendered yet. */
  rendering: (() => void)[] = [];
  /** Whether output is rendered only by {@link render}. */
  slow = false;
  onError: (error: ConnectionError) => void = () => {};

  constructor(world: World, more: Partial<TerminalOptions> = {}) {
    const finish = (rendered: () => void) => (this.slow ? this.rendering.push(rendered) : rendered());
    this.connection = new TerminalConnection({
      environment: world.environment,
      target: () => ({ url: "ws://test/", protocols: ["bowline.v1"] }),
      client: "00000000-0000-4000-8000-000000000001",
      size: { cols: 80, rows: 24 },
      on: {
        state: (state) => this.states.push(state),
        attached: (attached) => this.events.push(`attached ${attached.verdict}`),
        snapshotBegin: ({ scope }) => {
          this.events.push(`snapshot ${scope}`);
          if (scope === "all") this.shown = [];
        },
        snapshotPart: (bytes) => this.shown.push(...bytes),
        snapshotEnd: (_, rendered) => finish(rendered),
        output: (bytes, offset, rendered) => {
          if (offset !== this.shown.length)
            throw new Error(`received output for offset ${offset}, expected ${this.shown.length}`);
          this.shown.push(...bytes);
          finish(rendered);
        },
        resize: ({ cols, rows }) => this.events.push(`resize ${cols}x${rows}`),
        title: (title) => this.events.push(`title ${title}`),
        cwd: (cwd) => this.events.push(`cwd ${cwd}`),
        notify: (title, body) => this.events.push(`notify ${title} ${body}`),
        url: (url, open) => this.events.push(`url ${url} ${open}`),
        bell: () => this.events.push("bell"),
        presence: (clients, you) => this.events.push(`presence ${clients.length} ${you.size}`),
        command: (id, { kind }) => this.events.push(`command ${id} ${kind}`),
        exit: ({ code }) => this.events.push(`exit ${code}`),
        unsent: (unsent) => this.unsent.push(unsent),
        error: (error) => {
          this.errors.push(error);
          this.onError(error);
        },
      },
      ...more,
    });
  }

  /** Finishes rendering. */
  render(): void {
    for (const rendered of this.rendering.splice(0)) rendered();
  }

  /** Counts all callbacks and shown bytes: unchanged if nothing happened. */
  get activity(): number {
    const { states, errors, unsent, events, shown } = this;
    return states.length + errors.length + unsent.length + events.length + shown.length;
  }

  get stateNames(): string[] {
    return this.states.map(({ name }) => name);
  }
}
