/** The start of most tests of sending: a page with a `Post`, its gateway, and what the page was told. */
import { Post, type PostEntry, type PostState } from "../../src/index.js";
import { Gateway, SharedStorage } from "./command_gateway.js";
import { Session } from "./session.js";
import { World } from "./world.js";

/** The wall clock when a test begins. */
export const BEGIN = 1_700_000_000_000;
export const MINUTE = 60_000;
export const SESSION = "k3v9x0q2m7aa";
export const OTHER_SESSION = "bbbbbbbbbbbb";

export const prompt = (text: string) => ({ type: "prompt", text });

/** One tab. Several share a world, a gateway and a storage. */
export class Tab {
  readonly world: World;
  readonly gateway: Gateway;
  readonly browser: SharedStorage;
  readonly post: Post;
  readonly removed: string[] = [];
  readonly memoryOnly: string[] = [];
  readonly leftOut: string[] = [];
  /** The names of the states that entries had, in the order of the changes. */
  readonly states: string[] = [];
  logins = 0;
  onEntry: (entry: PostEntry) => void = () => {};

  constructor(first?: Tab, base?: string) {
    this.world = first?.world ?? new World();
    this.gateway = first?.gateway ?? new Gateway(this.world, new Session(this.world).info);
    this.browser = first?.browser ?? new SharedStorage();
    this.post = new Post({
      api: this.gateway.api(base),
      environment: this.world.environment,
      storage: this.browser.tab(base && new URL(base).pathname).storage,
      wallClock: () => BEGIN + this.world.now,
      on: {
        entry: (entry) => {
          this.states.push(entry.state.name);
          this.onEntry(entry);
        },
        removed: (id) => this.removed.push(id),
        memoryOnly: (id) => this.memoryOnly.push(id),
        leftOut: (ids) => this.leftOut.push(...ids),
        needsLogin: () => (this.logins += 1),
      },
    });
  }

  /** Sends a prompt, and returns its id. */
  prompt(text: string, session = SESSION): string {
    const result = this.post.send(session, prompt(text));
    if (!result.ok) throw new Error(result.why);
    return result.id;
  }

  state(id: string): PostState | undefined {
    return this.post.entries.find((entry) => entry.id === id)?.state;
  }

  /** The tab is closed without a word, as by a phone that needs memory. */
  kill(): void {
    this.post.dispose();
  }
}
