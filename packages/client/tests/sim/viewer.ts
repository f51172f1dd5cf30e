/** A terminal at the tests' end: it shows bytes, takes its time to render them, and remembers all that it was told. */
import {
  type ConnectionError,
  type ConnectionState,
  TerminalConnection,
  type TerminalOptions,
  type Unsent,
} from "../../src/index.js";
import type { World } from "./world.js";

/** A viewer of a session. */
export class Viewer {
  readonly connection: TerminalConnection;
  readonly states: ConnectionState[] = [];
  readonly errors: ConnectionError[] = [];
  readonly unsent: Unsent[] = [];
  readonly told: string[] = [];
  /** What the terminal shows, as the bytes that led to it. */
  shown: number[] = [];
  /** Rendering that is not done yet. */
  rendering: (() => void)[] = [];
  slow = false;
  /** Called for each error, as it comes. */
  errored: (error: ConnectionError) => void = () => {};

  constructor(world: World, more: Partial<TerminalOptions> = {}) {
    const take = (rendered: () => void) => (this.slow ? this.rendering.push(rendered) : rendered());
    this.connection = new TerminalConnection({
      environment: world.environment,
      target: () => ({ url: "ws://test/", protocols: ["bowline.v1"] }),
      client: "00000000-0000-4000-8000-000000000001",
      size: { cols: 80, rows: 24 },
      on: {
        state: (state) => this.states.push(state),
        attached: (attached) => this.told.push(`attached ${attached.verdict}`),
        snapshotBegin: ({ scope }) => {
          this.told.push(`snapshot ${scope}`);
          if (scope === "all") this.shown = [];
        },
        snapshotPart: (bytes) => this.shown.push(...bytes),
        snapshotEnd: (_, rendered) => take(rendered),
        output: (bytes, offset, rendered) => {
          if (offset !== this.shown.length) throw new Error(`output for ${offset} at ${this.shown.length}`);
          this.shown.push(...bytes);
          take(rendered);
        },
        resize: ({ cols, rows }) => this.told.push(`resize ${cols}x${rows}`),
        title: (title) => this.told.push(`title ${title}`),
        cwd: (cwd) => this.told.push(`cwd ${cwd}`),
        notify: (title, body) => this.told.push(`notify ${title} ${body}`),
        url: (url, open) => this.told.push(`url ${url} ${open}`),
        bell: () => this.told.push("bell"),
        presence: (clients, you) => this.told.push(`presence ${clients.length} ${you.size}`),
        command: (id, { kind }) => this.told.push(`command ${id} ${kind}`),
        exit: ({ code }) => this.told.push(`exit ${code}`),
        unsent: (unsent) => this.unsent.push(unsent),
        error: (error) => {
          this.errors.push(error);
          this.errored(error);
        },
      },
      ...more,
    });
  }

  /** Finishes rendering what waits. */
  render(): void {
    for (const rendered of this.rendering.splice(0)) rendered();
  }

  /** How often it was called back. */
  get calls(): number {
    const { states, errors, unsent, told, shown } = this;
    return states.length + errors.length + unsent.length + told.length + shown.length;
  }

  /** The names of the states, in order. */
  get names(): string[] {
    return this.states.map(({ name }) => name);
  }
}
