/** An open conversation: its connection, its transcript, and the state that the components around it show. */
import {
  AgentConnection,
  type Complete,
  type ConnectionState,
  type ConversationState,
  type SessionInfo,
} from "@bowline/client";
import { browserEnvironment } from "@bowline/client/browser";
import { untrack } from "svelte";
import { SvelteSet } from "svelte/reactivity";
import type { LiveSession } from "../session/live.ts";
import { gateway } from "../state/gateway.svelte.ts";
import { outbox } from "../state/outbox.svelte.ts";
import { isResuming } from "./composer/resume.svelte.ts";
import { Folds } from "./folds.svelte.ts";
import { type Message, activityOf, isAbortOf, isRecorded, messagesOf } from "./messages.ts";
import { type EndItem, type Item, type PlanStep, type PromptItem, Transcript } from "./transcript.ts";

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
  /** Why the last request for older events failed; empty if it did not. */
  olderProblem = $state("");
  /** Why the connection was not opened at the last try; empty if that is not known. */
  problem = $state("");
  /** Which parts the user has opened or folded. */
  readonly folds = new Folds();
  /** What this page has sent and the transcript does not show yet. */
  readonly messages: readonly Message[] = $derived.by(() => {
    void this.#version;
    return messagesOf(outbox().entries, this.id, this.#transcript);
  });
  readonly activity = $derived.by(() => {
    const line = activityOf(this.conversation, this.messages, isResuming);
    return line?.since === undefined ? line : { ...line, since: line.since + this.#clockAhead };
  });
  /** Milliseconds that this device's clock is ahead of the server's, at most: events take a moment to arrive. */
  #clockAhead = $state(0);
  #hasCompared = false;
  /** Whether the run in `activity` is about to be stopped. */
  readonly isStopping = $derived.by(() => {
    const run = this.conversation?.runs[0];
    if (!run) return false;
    return run.aborted || outbox().entries.some((entry) => isAbortOf(entry, this.id, run.run));
  });
  /** Whether older events may be dropped: the user sees the newest. */
  atEnd = true;
  /** Called when a run has ended just now: not for what this page only learns of later. */
  onEnd: (end: Complete) => void = () => {};
  /** Runs that never started and whose prompts were sent again. */
  readonly #resent = new SvelteSet<string>();
  /** Events with lower numbers had been recorded when this page connected. */
  #liveFrom = 0;
  readonly #transcript = new Transcript();
  /** Changes with the transcript. */
  #version = $state(0);
  #connection: AgentConnection | undefined;
  #disconnect = (): void => {};
  #publishing = false;
  #reading: Promise<void> | undefined;
  readonly #stop: () => void;

  constructor(id: string) {
    this.id = id;
    // A `$derived` that creates it would not notice its changes.
    outbox();
    this.#stop = $effect.root(() => {
      // A stream that was refused for good is replaced by another one.
      $effect(() => {
        const { events } = gateway;
        if (events) untrack(() => this.#connect(events));
        return () => this.#disconnect();
      });
      // What the transcript shows needs no entry any more.
      $effect(() => {
        void this.#version;
        const { post, entries } = outbox();
        for (const entry of entries) {
          if (entry.session === this.id && isRecorded(entry, this.#transcript)) post.dismiss(entry.id);
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

  /** The prompt of a run that never started, if it can be sent again. */
  resendable({ complete }: EndItem): PromptItem | undefined {
    if (complete.started || complete.aborted || this.#resent.has(complete.run)) return undefined;
    const at = this.items.findIndex((item) => item.kind === "prompt" && item.run === complete.run);
    const prompt = this.items[at];
    if (prompt?.kind !== "prompt") return undefined;
    // It was sent again before this page was loaded.
    const later = [...this.items.slice(at + 1), ...this.waiting, ...this.messages];
    return later.some((item) => "text" in item && item.text === prompt.text) ? undefined : prompt;
  }

  /** Sends the prompt of a run that never started again, as another one. */
  resend({ run, text, attachments }: PromptItem): void {
    const { post } = outbox();
    const files = attachments.length > 0 ? { attachments } : {};
    if (post.send(this.id, { type: "prompt", text, ...files }).ok) this.#resent.add(run);
  }

  retry = (): void => {
    gateway.retry();
    this.#connection?.retry();
  };

  async restart(): Promise<void> {
    gateway.put(await gateway.api.restart(this.id));
  }

  /** Reads the events before the oldest one. While they are being read, another call waits for the same. */
  older(): Promise<void> {
    if (!this.hasOlder) return Promise.resolve();
    this.#reading ??= this.#readOlder().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #readOlder(): Promise<void> {
    this.olderProblem = "";
    await this.#connection?.older();
  }

  /** Tries now what is tried again later by itself. */
  retryOlder(): void {
    if (this.#reading) this.#connection?.retry();
    else void this.older();
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
    const stopCounting = events.subscribe({
      board: (sessions) => (this.#liveFrom = sessions.find(({ id }) => id === this.id)?.offset ?? 0),
    });
    const connection = new AgentConnection({
      environment: browserEnvironment(),
      api: gateway.api,
      events,
      session: this.id,
      on: {
        state: (state) => {
          this.state = state;
          this.retryAt = state.name === "reconnecting" ? Date.now() + state.delay : 0;
          if (state.name === "open") this.problem = "";
        },
        reset: ({ records }) => {
          seen(records);
          this.#transcript.reset(records);
          this.#publish();
        },
        older: ({ records }) => {
          seen(records);
          this.#transcript.prepend(records);
          this.olderProblem = "";
          this.#publish();
        },
        events: (records) => {
          seen(records);
          this.#transcript.append(records);
          // A message goes when its event is shown: in the same frame, so that there is activity in each.
          if (records.some(({ event }) => "command" in event)) this.#publish();
          else this.#publishSoon();
          for (const { seq, at, event } of records) {
            if (seq >= this.#liveFrom) this.#compareClocks(at);
            if (event.type === "complete" && seq >= this.#liveFrom) this.onEnd(event);
          }
        },
        conversation: () => this.#publishSoon(),
        error: ({ source, message }) => {
          if (source !== "history") return;
          if (this.#reading) this.olderProblem = message;
          else this.problem = message;
        },
      },
    });
    this.#connection = connection;
    this.#disconnect = () => {
      stopCounting();
      connection.dispose();
    };
    this.state = connection.state;
  }

  #compareClocks(at: string): void {
    const ahead = Date.now() - Date.parse(at);
    if (Number.isNaN(ahead) || (this.#hasCompared && ahead >= this.#clockAhead)) return;
    this.#hasCompared = true;
    this.#clockAhead = ahead;
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
