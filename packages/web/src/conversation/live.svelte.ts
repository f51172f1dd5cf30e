/** An open conversation: its connection, its transcript, and the state that the components around it show. */
import { AgentConnection, type ConnectionState, type ConversationState, type SessionInfo } from "@bowline/client";
import { browserEnvironment } from "@bowline/client/browser";
import { untrack } from "svelte";
import type { LiveSession } from "../session/live.ts";
import { gateway } from "../state/gateway.svelte.ts";
import { outbox } from "../state/outbox.svelte.ts";
import { type Message, activityOf, messagesOf } from "./messages.ts";
import { type Item, type PlanStep, type PromptItem, Transcript } from "./transcript.ts";

/** Events that are kept while the newest are shown; older ones are read again when the user scrolls up. */
const MAX_RECORDS = 6000;

export class LiveConversation implements LiveSession {
  /** The session's id. */
  readonly id: string;
  state: ConnectionState = $state.raw({ name: "connecting" });
  /** When the connection is retried, in `Date.now()` milliseconds; 0 if it is not waiting to be. */
  retryAt = $state(0);
  /** The fold of the events; undefined until the first page was read. */
  conversation: ConversationState | undefined = $state.raw();
  items: readonly Item[] = $state.raw([]);
  /** Prompts that the session has accepted and the agent did not get yet. */
  waiting: readonly PromptItem[] = $state.raw([]);
  plan: readonly PlanStep[] = $state.raw([]);
  hasOlder = $state(false);
  loadingOlder = $state(false);
  /** Why the last request for older events failed; empty if it did not. */
  olderProblem = $state("");
  /** Counts resets: everything that is shown was replaced. */
  resets = $state(0);
  /** What this page has sent and the transcript does not show yet. */
  readonly messages: readonly Message[] = $derived.by(() => {
    void this.#version;
    return messagesOf(outbox().entries, this.id, this.#transcript);
  });
  readonly activity = $derived(activityOf(this.conversation, this.messages));
  /** Whether older events may be dropped: the user sees the newest. */
  atEnd = true;
  readonly #transcript = new Transcript();
  /** Changes with the transcript. */
  #version = $state(0);
  #connection: AgentConnection | undefined;
  #publishing = false;
  readonly #stop: () => void;

  constructor(id: string) {
    this.id = id;
    this.#stop = $effect.root(() => {
      // A stream that was refused for good is replaced by another one.
      $effect(() => {
        const { events } = gateway;
        if (events) untrack(() => this.#connect(events));
        return () => this.#connection?.dispose();
      });
      // What the transcript shows needs no entry any more.
      $effect(() => {
        void this.#version;
        const { post, entries } = outbox();
        for (const { id, session, state } of entries) {
          if (session === this.id && state.name === "delivered" && this.#transcript.hasCommand(id)) post.dismiss(id);
        }
      });
    });
    gateway.onLogin.add(this.retry);
  }

  /** The latest description of the session, for its name, directory and state. */
  get session(): SessionInfo | undefined {
    return gateway.sessions.get(this.id);
  }

  get title(): string {
    return this.conversation?.title ?? this.session?.title ?? "";
  }

  get cwd(): string {
    return this.session?.cwd ?? "";
  }

  get others(): number {
    return 0;
  }

  get exit() {
    return this.conversation?.exit;
  }

  /** Whether the session has ended: a message restarts it. */
  get ended(): boolean {
    const state = this.session?.state;
    return this.conversation?.exit !== undefined || state === "lost";
  }

  retry = (): void => {
    gateway.retry();
    this.#connection?.retry();
  };

  async restart(): Promise<void> {
    gateway.put(await gateway.api.restart(this.id));
  }

  /** Reads the events before the oldest one. */
  async older(): Promise<void> {
    if (this.loadingOlder || !this.hasOlder) return;
    this.loadingOlder = true;
    this.olderProblem = "";
    await this.#connection?.older();
    this.loadingOlder = false;
  }

  /** Reads older events until the one with this number is loaded, or nothing older is. */
  async loadUntil(seq: number): Promise<void> {
    while (this.hasOlder && (this.#transcript.start ?? 0) > seq) {
      const before = this.#transcript.start;
      await this.older();
      if (this.#transcript.start === before) return;
    }
  }

  dispose(): void {
    gateway.onLogin.delete(this.retry);
    this.#stop();
  }

  #connect(events: NonNullable<typeof gateway.events>): void {
    const { post } = outbox();
    const seen = (records: Parameters<Transcript["append"]>[0]) => {
      for (const record of records) post.handleEvent(this.id, record);
    };
    const connection = new AgentConnection({
      environment: browserEnvironment(),
      api: gateway.api,
      events,
      session: this.id,
      on: {
        state: (state) => {
          this.state = state;
          this.retryAt = state.name === "reconnecting" ? Date.now() + state.delay : 0;
        },
        reset: ({ records }) => {
          seen(records);
          this.#transcript.reset(records);
          this.resets += 1;
          this.#publish();
        },
        older: ({ records }) => {
          seen(records);
          this.#transcript.prepend(records);
          this.#publish();
        },
        events: (records) => {
          seen(records);
          this.#transcript.append(records);
          this.#publishSoon();
        },
        conversation: () => this.#publishSoon(),
        error: ({ source, message }) => {
          if (source === "history") this.olderProblem = message;
        },
      },
    });
    this.#connection = connection;
    this.state = connection.state;
  }

  /** Shows what has changed with the next frame, however many events come until then. */
  #publishSoon(): void {
    if (this.#publishing) return;
    this.#publishing = true;
    const publish = () => {
      if (this.#publishing) this.#publish();
    };
    // A hidden page has no frames.
    if (document.visibilityState === "visible") requestAnimationFrame(publish);
    else setTimeout(publish);
  }

  #publish(): void {
    this.#publishing = false;
    const transcript = this.#transcript;
    if (this.atEnd) {
      const start = transcript.trim(MAX_RECORDS);
      if (start !== undefined) this.#connection?.forgetBefore(start);
    }
    this.items = transcript.items;
    this.waiting = transcript.waiting;
    this.plan = transcript.plan;
    this.hasOlder = this.#connection?.hasOlder ?? false;
    this.conversation = this.#connection?.conversation;
    this.#version += 1;
  }
}
