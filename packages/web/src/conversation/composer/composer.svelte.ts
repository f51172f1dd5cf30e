/** What the user writes to one session: its text, its files and its draft. It outlives the page of the session. */
import type { Command } from "@bowline/client";
import { laneOf } from "@bowline/client/core";
import { SvelteMap } from "svelte/reactivity";
import { deviceStore } from "../../state/device.svelte.ts";
import { errorMessage, gateway } from "../../state/gateway.svelte.ts";
import { outbox } from "../../state/outbox.svelte.ts";
import { attachmentName } from "../attachments.ts";
import { refusalText } from "../messages.ts";
import type { PromptItem } from "../transcript.ts";
import { DraftStore } from "./draft.ts";
import { isFailedSetting } from "./held.ts";
import { PromptHistory } from "./history.ts";
import type { Withdrawal } from "./queue.ts";
import { resume } from "./resume.svelte.ts";
import { filesProblem, keptFiles } from "./upload.ts";
import { Uploads } from "./uploads.svelte.ts";

/** Milliseconds after a change until the draft is written. */
const WRITE_AFTER = 400;

/** A prompt that goes back into the composer once its withdrawal is certain. */
export interface Edit {
  readonly prompt: PromptItem;
  /** The id of the command that withdraws it. */
  readonly abort: string;
}

export class ComposerState {
  readonly session: string;
  text = $state("");
  readonly uploads: Uploads;
  readonly history = new PromptHistory();
  /** What the user has to know about the last thing that was done here; empty if nothing. */
  problem = $state("");
  /** Whether files are dragged over the conversation. */
  dropping = $state(false);
  /** By the run of the prompt. */
  readonly edits = new SvelteMap<string, Edit>();
  /** Components that show it. */
  users = 0;
  /** Focuses the text field, if it is in the page. */
  focus: () => void = () => {};
  /** Whether the draft differs from what was written last. */
  #changed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(session: string) {
    this.session = session;
    this.uploads = new Uploads({
      upload: (name, file) => gateway.api.upload(session, name, file),
      explain: errorMessage,
      changed: () => this.#handleChange(),
    });
    const { text, files } = drafts().load(session);
    this.text = text;
    this.uploads.put(files);
  }

  /** Whether there is something to send. */
  get hasContent(): boolean {
    return this.text.trim() !== "" || this.uploads.list.length > 0;
  }

  /** To be called when the user has changed the text. */
  handleInput(): void {
    this.problem = "";
    this.#handleChange();
  }

  #handleChange(): void {
    this.#changed = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.writeDraft(), WRITE_AFTER);
  }

  /** Writes the draft now, if it has changed: another tab may have written it since. */
  writeDraft(): void {
    clearTimeout(this.#timer);
    if (!this.#changed) return;
    this.#changed = false;
    drafts().save(this.session, { text: this.text, files: keptFiles(this.uploads.list) });
  }

  attach(files: readonly File[]): void {
    this.problem = this.uploads.add(files).join(" ");
  }

  /**
   * Sends a prompt. `ended` is whether the session has ended and is to be restarted for it. Returns whether the prompt was taken;
   * otherwise it stays here, and `problem` says why.
   */
  send(ended: boolean): boolean {
    if (!this.hasContent) return false;
    const problem = filesProblem(this.uploads.list);
    if (problem !== undefined) return this.#refuse(problem);
    const { ids } = this.uploads;
    const id = this.#post({ type: "prompt", text: this.text, ...(ids.length > 0 ? { attachments: ids } : {}) });
    if (id === undefined) return false;
    this.#clear();
    if (ended) void resume(id);
    return true;
  }

  /** Gives more instructions to a run that is in the agent. */
  steer(run: string): boolean {
    if (this.text.trim() === "") return false;
    if (this.uploads.list.length > 0)
      return this.#refuse("Files cannot be added to a run. Send them as a message, or remove them.");
    if (this.#post({ type: "steer", run, text: this.text }) === undefined) return false;
    this.#clear();
    return true;
  }

  /** Sends instructions that could not be added to a run as a message of their own. `id` is their command. */
  sendAsPrompt(id: string, text: string): void {
    if (this.#post({ type: "prompt", text }) !== undefined) outbox().post.dismiss(id);
  }

  /** Puts a text and files that were sent before what is written here. */
  put(text: string, attachments: readonly string[]): void {
    this.history.reset();
    this.text = [text, this.text].filter((part) => part.trim() !== "").join("\n\n");
    this.uploads.put(attachments.map((id) => ({ id, name: attachmentName(id), bytes: 0 })));
    this.#handleChange();
    this.focus();
  }

  /** Changes how the agent works. */
  set(command: Command): void {
    this.#post(command);
  }

  /** Withdraws a prompt that the agent has not got yet. Returns the id of the command. */
  withdraw(run: string): string | undefined {
    return this.#post({ type: "abort", run });
  }

  /** Withdraws a prompt, and takes it back once that is certain. */
  edit(prompt: PromptItem): void {
    if (this.edits.has(prompt.run)) return;
    const abort = this.withdraw(prompt.run);
    if (abort !== undefined) this.edits.set(prompt.run, { prompt, abort });
  }

  /** Ends an edit whose withdrawal is decided. */
  finishEdit(run: string, withdrawal: Exclude<Withdrawal, "pending">): void {
    const edit = this.edits.get(run);
    if (!edit) return;
    this.edits.delete(run);
    const { text, attachments } = edit.prompt;
    if (withdrawal === "withdrawn") this.put(text, attachments);
    else this.problem = EDIT_PROBLEMS[withdrawal];
  }

  /** Puts a command into the queue. Returns its id, if there was room. */
  #post(command: Command): string | undefined {
    if (laneOf(command) === "ordered") this.#discardFailedSettings();
    const result = outbox().post.send(this.session, command);
    this.problem = result.ok ? "" : refusalText(result.why);
    return result.ok ? result.id : undefined;
  }

  /** Drops failed changes of settings: they would hold the messages after them, and the user has moved on. */
  #discardFailedSettings(): void {
    const { entries, post } = outbox();
    for (const { id } of entries.filter((entry) => isFailedSetting(entry, this.session))) post.discard(id);
  }

  #refuse(problem: string): false {
    this.problem = problem;
    return false;
  }

  /** Only once the command with what is written here is in the queue. */
  #clear(): void {
    clearTimeout(this.#timer);
    this.#changed = false;
    this.text = "";
    this.uploads.clear();
    this.history.reset();
    drafts().remove(this.session);
  }
}

const EDIT_PROBLEMS: Readonly<Record<Exclude<Withdrawal, "pending" | "withdrawn">, string>> = {
  started: "The agent had already begun with that message, so its run was stopped. It stays in the conversation.",
  failed: "That message was not withdrawn.",
  unknown: "Whether the agent got that message is not known here. Look for it in the conversation.",
};

let store: DraftStore | undefined;

function drafts(): DraftStore {
  store ??= new DraftStore(deviceStore, new URL("./", document.baseURI).pathname);
  return store;
}

/**
 * By session. Those with something in them are kept while the page lives, so that uploads go on and what is written stays; also
 * those that a prompt is to come back to, which it does at the next visit.
 */
const composers = new Map<string, ComposerState>();

/** What is being written to a session. */
export function composerOf(session: string): ComposerState {
  let composer = composers.get(session);
  if (!composer) composers.set(session, (composer = new ComposerState(session)));
  return composer;
}

/** To be called when a component that shows the composer leaves the page. */
export function leaveComposer(composer: ComposerState): void {
  composer.writeDraft();
  composer.users -= 1;
  if (composer.users > 0) return;
  composer.focus = () => {};
  composer.dropping = false;
  composer.problem = "";
  if (!composer.hasContent && composer.edits.size === 0) composers.delete(composer.session);
}
