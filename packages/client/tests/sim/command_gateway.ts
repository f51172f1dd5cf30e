/** A gateway for commands: it runs each one once, by its id, and fails as a test wants. */
import { Api, type Fetch } from "../../src/index.js";
import { postStorage } from "../../src/browser/index.js";
import type { World } from "./world.js";

/** What a request gets in place of the usual response; "lost" if it never reaches the gateway, "hangs" if nothing comes back. */
export type Fault = Response | "lost" | "hangs" | "no response";

export interface CommandRequest {
  readonly session: string;
  readonly id: string;
  readonly command: { readonly type: string; readonly text?: string };
}

/** A refusal by the gateway itself. */
export function refusal(status: number, code: string, detail: string, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify({ code, detail }), { status, headers: { "Bowline-Code": code, ...headers } });
}

export class Gateway {
  /** All requests that sent a command, also those that were lost. */
  readonly requests: CommandRequest[] = [];
  /** The commands that were run, in order. */
  readonly ran: CommandRequest[] = [];
  /** The faults of the next requests; none for an empty list. */
  faults: (Fault | undefined)[] = [];
  /** The faults of the requests to restart a session. */
  restarts: Fault[] = [];
  restarted = 0;
  /** Requests that are under way. */
  open = 0;
  readonly #world: World;
  readonly #session: object;

  constructor(world: World, session: object) {
    this.#world = world;
    this.#session = session;
  }

  api(base = "https://host/"): Api {
    return new Api({ base, auth: { kind: "bearer", token: "T" }, fetch: this.#fetch });
  }

  /** The ids or texts of what was run. */
  get texts(): (string | undefined)[] {
    return this.ran.map(({ command }) => command.text);
  }

  readonly #fetch: Fetch = (url, { body, signal }) => {
    const [, session = "", call] = /sessions\/([^/]+)\/(\w+)$/.exec(url) ?? [];
    const answer = call === "restart" ? this.#restart() : this.#command(session, JSON.parse(body as string));
    this.open += 1;
    return new Promise<Response>((resolve, reject) => {
      const settle = (then: () => void) => {
        this.open -= 1;
        then();
      };
      (signal as unknown as EventTarget).addEventListener("abort", () => settle(() => reject(new Error("aborted"))));
      if (answer === "hangs") return;
      this.#world.later(() => {
        if (signal.aborted) return;
        settle(() => (answer instanceof Response ? resolve(answer) : reject(new Error("connection reset"))));
      });
    });
  };

  #restart(): Fault {
    this.restarted += 1;
    return this.restarts.shift() ?? Response.json(this.#session);
  }

  #command(session: string, { id, command }: Omit<CommandRequest, "session">): Fault {
    const request = { session, id, command };
    this.requests.push(request);
    const fault = this.faults.shift();
    if (fault === "lost" || fault instanceof Response) return fault;
    const known = this.ran.findIndex((other) => other.id === id);
    const seq = known === -1 ? this.ran.push(request) - 1 : known;
    if (fault) return fault;
    const status = known === -1 ? "accepted" : "duplicate";
    return Response.json({ id, seq, run: `r${seq}`, status }, { status: known === -1 ? 202 : 200 });
  }
}

/** A `localStorage` that the tabs of a browser share. */
export class SharedStorage {
  readonly values = new Map<string, string>();
  /** Makes every access throw. */
  broken = false;
  /** Makes writing throw. */
  full = false;
  /** The listeners of all tabs. */
  listeners = 0;
  readonly #tabs: EventTarget[] = [];

  /** The storage as one tab sees it, whose gateway has this path. Events reach the other tabs at once. */
  tab(path = "/"): { storage: ReturnType<typeof postStorage>; events: EventTarget } {
    const events = new EventTarget();
    const [add, remove] = [events.addEventListener.bind(events), events.removeEventListener.bind(events)];
    events.addEventListener = (...listener) => {
      this.listeners += 1;
      add(...listener);
    };
    events.removeEventListener = (...listener) => {
      this.listeners -= 1;
      remove(...listener);
    };
    this.#tabs.push(events);
    const access = <T>(run: () => T): T => {
      if (this.broken) throw new Error("The operation is insecure.");
      return run();
    };
    const tell = (key: string, newValue: string | null) => {
      for (const other of this.#tabs) {
        if (other !== events) other.dispatchEvent(Object.assign(new Event("storage"), { key, newValue }));
      }
    };
    const { values } = this;
    const isFull = () => this.full;
    const backing = {
      get length() {
        return access(() => values.size);
      },
      key: (i: number) => access(() => [...values.keys()][i] ?? null),
      getItem: (key: string) => access(() => values.get(key) ?? null),
      setItem: (key: string, value: string) =>
        access(() => {
          if (isFull()) throw new Error("QuotaExceededError");
          values.set(key, value);
          tell(key, value);
        }),
      removeItem: (key: string) => access(() => values.delete(key) && tell(key, null)),
    };
    return { storage: postStorage({ path, open: () => backing, events: () => events }), events };
  }

  /** The user empties the storage. */
  clear(): void {
    this.values.clear();
    for (const tab of this.#tabs) tab.dispatchEvent(Object.assign(new Event("storage"), { key: null, newValue: null }));
  }
}
