/** The commands that this page sends to agent sessions, and how far each has come. One queue for the whole page. */
import { Post, type PostEntry } from "@bowline/client";
import { browserEnvironment, postStorage } from "@bowline/client/browser";
import { gateway } from "./gateway.svelte.ts";
import { showNotice } from "./notices.svelte.ts";

class Outbox {
  /** All entries, in the order in which they are sent. */
  entries: readonly PostEntry[] = $state.raw([]);
  /** The ids of entries that are lost if the page is closed before they are delivered. */
  memoryOnly: ReadonlySet<string> = $state.raw(new Set());
  readonly post: Post;

  constructor() {
    const update = () => (this.entries = this.post.entries);
    this.post = new Post({
      api: gateway.api,
      environment: browserEnvironment(),
      storage: postStorage(),
      on: {
        entry: update,
        removed: update,
        memoryOnly: (id) => (this.memoryOnly = new Set([...this.memoryOnly, id])),
        needsLogin: () => gateway.requestRefused(),
        leftOut: (ids) =>
          showNotice("Too many unsent messages", {
            body: `${ids.length} of them wait in this browser until others are sent or discarded.`,
          }),
      },
    });
    this.entries = this.post.entries;
    gateway.onLogin.add(() => this.post.handleLogin());
  }
}

let created: Outbox | undefined;

/** The queue of this page. It begins to send stored commands when it is first used. */
export function outbox(): Outbox {
  created ??= new Outbox();
  return created;
}
