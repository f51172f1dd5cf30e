/** An open terminal session: its connection, its screen, and the state that the components around it show. */
import {
  type ConnectionState,
  type ExitStatus,
  newClientId,
  type SubmitError,
  type SessionInfo,
  type Size,
  TerminalConnection,
  type Unsent,
  type Permissions,
} from "@bowline/client";
import { browserEnvironment, previousClientId } from "@bowline/client/browser";
import { OUTBOX } from "@bowline/client/core";
import { untrack } from "svelte";
import { backoff, clampFont, saveSettings, settings, tabStore } from "../state/device.svelte.ts";
import { gateway, logConnectionError } from "../state/gateway.svelte.ts";
import { showNotice } from "../state/notices.svelte.ts";
import { copy } from "../parts/clipboard.ts";
import { bundledFont } from "./font.svelte.ts";
import { applyModifiers, keyBytes, type KeyName, type Modifiers, releaseModifiers } from "./keys.ts";
import type { HoveredLink } from "./links.ts";
import { type ClipboardRequest, CLIPBOARD_LIMIT } from "./osc52.ts";
import { type Appearance, Screen, type Scroll } from "./screen.ts";
import { paletteTheme } from "./palettes.ts";
import { DARK } from "./themes.ts";

/** How much input is kept until the connection is created, which takes a moment; more is refused. */
const EARLY_LIMIT = 64 * 1024;
/** The key in the tab's storage of the session whose size this page decided when it was left. */
const OWNED_KEY = "bowline.size";

/** Output that is in the log and was not shown. */
export interface SkippedOutput {
  /** The range of the log that all of it is in. */
  readonly from: number;
  readonly to: number;
  readonly bytes: number;
}

export class LiveTerminal {
  /** The session id or name in the URL. */
  readonly id: string;
  state: ConnectionState = $state.raw({ name: "connecting" });
  /** When the connection is retried, in `Date.now()` milliseconds; 0 if it is not waiting to be. */
  retryAt = $state(0);
  session: SessionInfo | undefined = $state.raw();
  title = $state("");
  cwd = $state("");
  /** The number of other viewers. */
  others = $state(0);
  you: Permissions = $state.raw({ write: true, size: false });
  exit: ExitStatus | undefined = $state.raw();
  unsent: Unsent | undefined = $state.raw();
  /** Bytes of input that the session has not taken; 0 while connected. */
  queuedBytes = $state(0);
  size: Size = $state.raw({ cols: 80, rows: 24 });
  /** When the bell last rang, in `Date.now()` milliseconds; 0 for never. */
  bellAt = $state(0);
  /** Whether the bell rang while the page was hidden; reset when the page is shown. */
  bellUnseen = $state(false);
  /** The output that snapshots skipped, until the user has read or dismissed it. */
  skipped: SkippedOutput | undefined = $state.raw();
  scroll: Scroll = $state.raw({ up: false, top: false });
  /** Whether output came while the terminal was scrolled up. */
  newOutput = $state(false);
  /** Whether the session was on the board and no longer is. */
  forgotten = $state(false);
  /** The content of the text field, kept while that is closed. */
  draft = $state("");
  /** The link under the pointer. */
  link: HoveredLink | undefined = $state.raw();
  modifiers: Modifiers = $state.raw({ ctrl: "off", alt: "off" });
  readonly screen: Screen;
  /** Input from before the connection is created. */
  #earlyInput: (string | Uint8Array)[] = [];
  /** Whether the session was on the board. */
  #listed = false;
  /** How many times input was refused. */
  #refusals = 0;
  /** Created once the size of the window is known. */
  #connection: TerminalConnection | undefined;
  #client = newClientId();
  /** Whether the page was shown, and the session has not reported its viewers since. */
  #claimPending = false;
  /** Whether this page decided the size when it was left, and has not attached since. */
  #ownedWhenLeft = false;
  #disposed = false;

  constructor(id: string, container: HTMLElement, appearance: Appearance) {
    this.id = id;
    this.screen = new Screen(container, appearance, {
      // Leaving the view removes a focused terminal, which then reports to the program that it lost the focus. The
      // browser does that while Svelte updates the page, when state may only be changed untracked.
      onInput: (data, typed) => {
        // The user did not type a report, so a read-only viewer drops it without a notice.
        if (this.you.write || typed) untrack(() => this.#handleInput(data, typed));
      },
      onBinaryInput: (data) => {
        if (this.you.write) this.type(data);
      },
      onWindowSize: (size) => this.#handleWindowSize(size),
      onClipboard: (request) => void this.#handleClipboard(request),
      onLink: (link) => untrack(() => (this.link = link)),
      onScroll: (scroll) => untrack(() => this.#handleScroll(scroll)),
      onLayout: (size) => (this.size = size),
    });
    gateway.onLogin.add(this.retry);
    document.addEventListener("visibilitychange", this.#handleVisibility);
    window.addEventListener("pagehide", this.#handleLeave);
  }

  /** Whether another viewer sets the size; the terminal is then scaled to fit and framed. */
  get framed(): boolean {
    return !this.you.size;
  }

  /** Sends input unchanged. */
  type(data: string | Uint8Array): void {
    const refusal = this.#connection ? this.#connection.input(data) : this.#keepEarlyInput(data);
    if (refusal) this.#reportRefused(refusal);
    this.#updateCounts();
  }

  #keepEarlyInput(data: string | Uint8Array): SubmitError | undefined {
    const length = this.#earlyInput.reduce((sum, { length }) => sum + length, data.length);
    if (length > EARLY_LIMIT) return "full";
    this.#earlyInput.push(data);
    return undefined;
  }

  /** Sends a key of the key row. */
  press(key: KeyName | { readonly text: string }): void {
    this.#followTyping();
    const held = this.#heldModifiers();
    const { applicationCursorKeysMode } = this.screen.term.modes;
    this.type(
      typeof key === "string" ? keyBytes(key, held, applicationCursorKeysMode) : applyModifiers(key.text, held),
    );
    this.modifiers = releaseModifiers(this.modifiers);
    this.screen.term.scrollToBottom();
    this.screen.showCursor();
  }

  /** Pastes text, bracketed if the program asked for that. Returns false if it was refused; the user is notified. */
  paste(text: string): boolean {
    const before = this.#refusals;
    if (text) this.screen.term.paste(text);
    return this.#refusals === before;
  }

  /** Sets the terminal to this window's size. */
  claimSize(): void {
    this.#connection?.claimSize(this.screen.window);
  }

  /** Changes the font size on this device by `by` pixels. */
  zoom(by: number): void {
    settings.fontSize = clampFont(settings.fontSize + by);
    saveSettings();
  }

  /** Reconnects now. */
  retry = (): void => {
    if (this.state.name === "gone") this.#replaceConnection();
    else this.#connection?.retry();
  };

  /** Sends the unsent input. If the session has ended, it stays unsent. */
  sendUnsent(): void {
    this.#connection?.sendUnsent();
    this.#updateCounts();
  }

  discardUnsent(): void {
    this.#connection?.discardUnsent();
    this.#updateCounts();
  }

  /** Starts an ended session again. */
  async restart(): Promise<void> {
    if (!this.session) return;
    gateway.put(await gateway.api.restart(this.session.id, this.session.epoch));
    this.#replaceConnection();
  }

  /** The end of the output, in bytes since the session was created. */
  get end(): number {
    return this.#connection?.cursor?.offset ?? this.session?.offset ?? 0;
  }

  scrollToBottom(): void {
    this.screen.term.scrollToBottom();
    this.screen.showCursor();
  }

  /** Handles a board update of this session. If it was restarted elsewhere, attaches to the new run. */
  handleBoardUpdate(session: SessionInfo | undefined): void {
    this.forgotten = this.#listed && !session;
    this.#listed ||= session !== undefined;
    if (!session) return;
    if (this.state.name === "ended" && session.state === "running" && session.epoch !== this.session?.epoch)
      this.#replaceConnection();
    else if (this.session) this.session = session;
  }

  dispose(): void {
    this.#disposed = true;
    gateway.onLogin.delete(this.retry);
    document.removeEventListener("visibilitychange", this.#handleVisibility);
    window.removeEventListener("pagehide", this.#handleLeave);
    this.#connection?.dispose();
    this.screen.dispose();
  }

  #start(): void {
    if (this.#disposed) return;
    this.#ownedWhenLeft = tabStore.get(OWNED_KEY) === this.id;
    tabStore.remove(OWNED_KEY);
    this.#connection ??= this.#connect(previousClientId(this.#client));
    for (const data of this.#earlyInput.splice(0)) this.type(data);
  }

  #connect(was: string | undefined, unsent?: Unsent): TerminalConnection {
    const theme = this.screen.term.options.theme;
    const { screen } = this;
    // A name may be given to another session later, so use the id once it is known.
    const { target, refused } = gateway.trackLogin((dial) =>
      gateway.api.attachTarget(this.session?.id ?? this.id)(dial),
    );
    return new TerminalConnection({
      environment: browserEnvironment(),
      target,
      client: this.#client,
      ...(was === undefined ? {} : { was }),
      unsent,
      size: screen.window,
      backoff: backoff(),
      claimSize: settings.useMySize || this.#ownedWhenLeft,
      scrollback: settings.scrollback,
      theme: { fg: theme?.foreground ?? DARK.foreground!, bg: theme?.background ?? DARK.background! },
      on: {
        state: (state) => {
          this.#handleState(state);
          if (state.name === "needs-login") refused();
        },
        attached: (attached) => {
          const ownedSize = this.you.size;
          this.session = attached.session;
          this.title = attached.session.title;
          this.cwd = attached.session.cwd;
          this.#setRights(attached.you);
          // Another viewer took the size while this page was disconnected, or the page was shown before it
          // noticed the disconnect.
          if (ownedSize || this.#claimPending) this.#claimAgain(this.#ownedWhenLeft);
          this.#ownedWhenLeft = false;
          if (attached.verdict === "exact") screen.resize(attached.size);
          this.#updateCounts();
        },
        snapshotBegin: ({ size, scope, missed }) => {
          if (missed) this.#noteSkipped(missed);
          screen.beginSnapshot(size, scope === "all");
        },
        snapshotPart: (bytes) => screen.addSnapshotPart(bytes),
        snapshotEnd: (_, rendered) => screen.endSnapshot(rendered),
        output: (bytes, _, rendered) => {
          screen.write(bytes, rendered);
          if (this.scroll.up) this.newOutput = true;
          if (this.queuedBytes > 0) this.#updateCounts();
        },
        resize: (size) => screen.resize(size),
        title: (title) => (this.title = title),
        cwd: (cwd) => (this.cwd = cwd),
        bell: () => {
          this.bellAt = Date.now();
          this.bellUnseen ||= document.visibilityState !== "visible";
        },
        notify: (title, body) => {
          // On a hidden page, the board update shows the notice.
          if (document.visibilityState === "visible") showNotice(title || this.title || "Notification", { body });
        },
        url: (url, open) => {
          if (open) showNotice("The program wants to open a link", { body: url, href: url, action: "Open link" });
        },
        presence: (clients, you) => {
          this.others = Math.max(clients.length - 1, 0);
          this.#claimPending = false;
          this.#setRights(you);
        },
        exit: (status) => {
          this.exit = status;
          screen.hideCursor();
        },
        unsent: () => this.#updateCounts(),
        error: (error) => {
          // A read-only viewer may not claim the size, which the "Use my size" setting does automatically.
          const expected = error.code === "input_hole" || (error.code === "not_allowed" && !this.you.write);
          if (error.source !== "server") logConnectionError("terminal", error.message, error.cause);
          else if (!expected) showNotice("Session error", { body: error.message });
        },
      },
    });
  }

  /** Replaces a connection that has ended, while the session goes on. */
  #replaceConnection(): void {
    this.#client = newClientId();
    this.#connection?.dispose();
    this.exit = undefined;
    this.skipped = undefined;
    this.state = { name: "connecting" };
    // The user still decides about the unsent input.
    this.#connection = this.#connect(previousClientId(this.#client), this.#connection?.unsent);
    this.#updateCounts();
  }

  #handleState(state: ConnectionState): void {
    this.state = state;
    if (state.name === "gone") this.screen.hideCursor();
    this.retryAt = state.name === "reconnecting" ? Date.now() + state.delay : 0;
    this.#updateCounts();
  }

  #handleScroll(scroll: Scroll): void {
    this.scroll = scroll;
    if (!scroll.up) this.newOutput = false;
  }

  #noteSkipped({ from, to }: { readonly from: number; readonly to: number }): void {
    const before = this.skipped;
    this.skipped = {
      from: Math.min(before?.from ?? from, from),
      to: Math.max(before?.to ?? to, to),
      bytes: (before?.bytes ?? 0) + to - from,
    };
  }

  #setRights(you: Permissions): void {
    this.you = you;
    this.screen.framed = !you.size;
  }

  #handleInput(data: string, typed: boolean): void {
    if (typed) this.#followTyping();
    const held = this.#heldModifiers();
    this.type(held.ctrl || held.alt ? applyModifiers(data, held) : data);
    if (held.ctrl || held.alt) this.modifiers = releaseModifiers(this.modifiers);
  }

  #heldModifiers(): { ctrl: boolean; alt: boolean } {
    return { ctrl: this.modifiers.ctrl !== "off", alt: this.modifiers.alt !== "off" };
  }

  /** Takes over the size for a user who types, if the settings say so. */
  #followTyping(): void {
    if (settings.sizeFollowsTyping && this.framed && this.you.write && this.state.name === "open") this.claimSize();
  }

  #handleWindowSize(size: Size): void {
    if (this.#connection) this.#connection.resize(size);
    // The first layout may happen before the constructor is done.
    else queueMicrotask(() => this.#start());
  }

  /** When the page is shown: claims the size again, if the settings say so. */
  #handleVisibility = (): void => {
    if (document.visibilityState !== "visible") return;
    this.bellUnseen = false;
    // The connection may be dead without the page knowing, so repeat the claim after a reconnect.
    this.#claimPending = true;
    this.#claimAgain();
  };

  /**
   * When the page is closed, reloaded or replaced: others get the size at once, as the connection is closed. A page
   * that comes back, by a reload or from the back/forward cache, takes it again.
   */
  #handleLeave = (): void => {
    this.#ownedWhenLeft = this.you.size && this.session !== undefined && !this.exit;
    if (this.#ownedWhenLeft) tabStore.set(OWNED_KEY, this.session!.id);
  };

  #claimAgain(wanted = false): void {
    const visible = document.visibilityState === "visible";
    if (visible && (wanted || settings.useMySize) && this.framed && this.you.write) this.claimSize();
  }

  #updateCounts(): void {
    this.unsent = this.#connection?.unsent;
    this.queuedBytes = this.state.name === "open" ? 0 : (this.#connection?.queuedBytes ?? 0);
  }

  #reportRefused(refusal: SubmitError): void {
    this.#refusals++;
    if (this.#disposed) return;
    const limit = this.#connection ? `${OUTBOX >> 20} MB` : `${EARLY_LIMIT >> 10} KB`;
    if (refusal === "full" && this.unsent)
      showNotice("Input not sent", {
        body: `The queue is full (limit ${limit}). Send or discard the unsent input, then try again.`,
      });
    else if (refusal === "full")
      showNotice("Input not sent", {
        body: `The input is too large to queue (limit ${limit}). Send it in smaller pieces.`,
      });
    else if (refusal === "read-only")
      showNotice("Read-only", { body: "Your login can view this session, but not type into it." });
  }

  async #handleClipboard(request: ClipboardRequest): Promise<void> {
    if (request.kind === "too-large") {
      const size = Math.ceil(request.bytes / 1024).toLocaleString();
      showNotice("Not copied", {
        body: `The program tried to copy ${size} KB to the clipboard (limit ${CLIPBOARD_LIMIT >> 10} KB).`,
      });
    } else if (request.kind === "write" && !(await copy(request.text))) {
      showNotice("Not copied", { body: "The browser blocked access to the clipboard." });
    }
  }
}

/** The terminal appearance that the settings of this device give. */
export function appearanceFor(dark: boolean): Appearance {
  const { fontSize, scrollback, cursorBlink, screenReader, gpu } = settings;
  const theme = paletteTheme(settings.palette, dark);
  return {
    theme,
    fontSize,
    fontFamily: fontFamily(),
    scrollback,
    cursorBlink,
    screenReader,
    gpu,
  };
}

/** The font family of the settings; empty for the default. */
function fontFamily(): string {
  switch (settings.font) {
    case "default":
      return "";
    case "bundled":
      return bundledFont();
    case "installed":
      return settings.fontFamily;
  }
}
