/** A session that is looked at: its connection, its screen, and what a person wants to know about both. */
import {
  type ConnectionState,
  type ExitStatus,
  newClientId,
  type NotTaken,
  type SessionInfo,
  type Size,
  TerminalConnection,
  type Unsent,
  type You,
} from "@bowline/client";
import { browserEnvironment, reloadedFrom } from "@bowline/client/browser";
import { clampFont, keepSettings, settings } from "../state/device.svelte.ts";
import { gateway } from "../state/gateway.svelte.ts";
import { notice } from "../state/notices.svelte.ts";
import { copy } from "./clipboard.ts";
import { afterKey, bytesOf, type Modifiers, modified, type Named } from "./keys.ts";
import { type ClipboardRequest, CLIPBOARD_LIMIT } from "./osc52.ts";
import { type Looks, Screen } from "./screen.ts";
import { DARK, LIGHT } from "./themes.ts";

/** What xterm.js tells of the mouse and the focus. Nobody typed it: where it is not wanted, nobody has to be told. */
const REPORT = /^\x1b\[(?:<|M|[IO]$)/;
/** Input that is kept before there is a connection, which is a moment at most; more is refused. */
const EARLY_LIMIT = 64 * 1024;

/** A viewed session. */
export class Live {
  /** What the address calls it: an id or a name. */
  readonly id: string;
  state: ConnectionState = $state.raw({ name: "connecting" });
  /** When the next dial is due, by the page's clock; 0 for none. */
  due = $state(0);
  session: SessionInfo | undefined = $state.raw();
  title = $state("");
  cwd = $state("");
  others = $state(0);
  you: You = $state.raw({ write: true, size: false });
  exit: ExitStatus | undefined = $state.raw();
  unsent: Unsent | undefined = $state.raw();
  /** Typed bytes that the session has not taken. */
  waiting = $state(0);
  /** The terminal's size, and the font it is drawn with. */
  size: Size = $state.raw({ cols: 80, rows: 24 });
  font = $state(0);
  /** When the bell last rang, by the page's clock. */
  rang = $state(0);
  /** It rang while nobody could see it, and nobody has looked since. */
  rangUnseen = $state(false);
  /** Output that a snapshot skipped, in bytes, until it is dismissed. */
  skipped = $state(0);
  /** What is in the text field, also while it is closed. */
  draft = $state("");
  modifiers: Modifiers = $state.raw({ ctrl: "off", alt: "off" });
  readonly screen: Screen;
  /** What was typed before there is a connection. */
  #early: (string | Uint8Array)[] = [];
  /** How often input was refused. */
  #refusals = 0;
  /** There is one as soon as the window's size is known. */
  #connection: TerminalConnection | undefined;
  #client = newClientId();
  /** The page was shown, and the session has not been heard since. */
  #wanted = false;
  #disposed = false;

  constructor(id: string, place: HTMLElement, looks: Looks) {
    this.id = id;
    this.screen = new Screen(place, looks, {
      typed: (data) => {
        if (this.you.write || !REPORT.test(data)) this.#typed(data);
      },
      typedBytes: (data) => {
        if (this.you.write) this.type(data);
      },
      window: (size) => this.#windowed(size),
      clipboard: (request) => void this.#copied(request),
      laidOut: (size, font) => {
        this.size = size;
        this.font = font;
      },
    });
    gateway.onLogin.add(this.retry);
    document.addEventListener("visibilitychange", this.#shown);
  }

  /** Somebody else's size rules. */
  get framed(): boolean {
    return !this.you.size;
  }

  /** Input as it is. */
  type(data: string | Uint8Array): void {
    const why = this.#connection ? this.#connection.input(data) : this.#keepEarly(data);
    if (why) this.#refused(why);
    this.#count();
  }

  #keepEarly(data: string | Uint8Array): NotTaken | undefined {
    const length = this.#early.reduce((sum, { length }) => sum + length, data.length);
    if (length > EARLY_LIMIT) return "full";
    this.#early.push(data);
    return undefined;
  }

  /** A key of the key row. */
  press(key: Named | { readonly text: string }): void {
    const held = this.#held();
    const { applicationCursorKeysMode } = this.screen.term.modes;
    this.type(typeof key === "string" ? bytesOf(key, held, applicationCursorKeysMode) : modified(key.text, held));
    this.modifiers = afterKey(this.modifiers);
    this.screen.term.scrollToBottom();
    this.screen.showCursor();
  }

  /** Text as one paste: bracketed, where the program asked for it. False when it was refused, which the user is told. */
  paste(text: string): boolean {
    const before = this.#refusals;
    if (text) this.screen.term.paste(text);
    return this.#refusals === before;
  }

  /** This window's size rules from now on, also the next time on this device. */
  claimSize(): void {
    settings.useMySize = true;
    keepSettings();
    this.#connection?.claimSize(this.screen.window);
  }

  /** Makes the font larger or smaller, on this device. */
  zoom(by: number): void {
    settings.fontSize = clampFont(settings.fontSize + by);
    keepSettings();
  }

  /** Tries again now. */
  retry = (): void => {
    if (this.state.name === "gone") this.#again();
    else this.#connection?.retry();
  };

  /** Types what was not sent, into the session as it is now. What is over takes nothing: then it stays. */
  sendUnsent(): void {
    this.#connection?.sendUnsent();
    this.#count();
  }

  discardUnsent(): void {
    this.#connection?.discardUnsent();
    this.#count();
  }

  /** A session that ended lives again. */
  async restart(): Promise<void> {
    if (!this.session) return;
    gateway.put(await gateway.api.restart(this.session.id, this.session.epoch));
    this.#again();
  }

  /** The board says something about the session: one that was restarted elsewhere is followed. */
  heard(session: SessionInfo): void {
    if (this.state.name === "ended" && session.state === "running" && session.epoch !== this.session?.epoch)
      this.#again();
    else if (this.session) this.session = session;
  }

  /** Takes everything down. */
  dispose(): void {
    this.#disposed = true;
    gateway.onLogin.delete(this.retry);
    document.removeEventListener("visibilitychange", this.#shown);
    this.#connection?.dispose();
    this.screen.dispose();
  }

  #start(): void {
    if (this.#disposed) return;
    this.#connection ??= this.#connect(reloadedFrom(this.#client));
    for (const data of this.#early.splice(0)) this.type(data);
  }

  #connect(was: string | undefined, unsent?: Unsent): TerminalConnection {
    const theme = this.screen.term.options.theme;
    const { screen } = this;
    // A name may come to mean another session; once this one is known, its id is what is meant.
    const { target, refused } = gateway.keyed((dial) => gateway.api.attachTarget(this.session?.id ?? this.id)(dial));
    return new TerminalConnection({
      environment: browserEnvironment(),
      target,
      client: this.#client,
      ...(was === undefined ? {} : { was }),
      unsent,
      size: screen.window,
      claimSize: settings.useMySize,
      scrollback: settings.scrollback,
      theme: { fg: theme?.foreground ?? DARK.foreground!, bg: theme?.background ?? DARK.background! },
      on: {
        state: (state) => {
          this.#became(state);
          if (state.name === "needs-login") refused();
        },
        attached: (attached) => {
          const had = this.you.size;
          this.session = attached.session;
          this.title = attached.session.title;
          this.cwd = attached.session.cwd;
          this.#is(attached.you);
          // Somebody else got the size while this page was away, or it was shown before the loss of the line was known.
          if (had || this.#wanted) this.#claimAgain();
          if (attached.verdict === "exact") screen.resize(attached.size);
          this.#count();
        },
        snapshotBegin: ({ size, scope, missed }) => {
          if (missed) this.skipped += missed.to - missed.from;
          screen.beginSnapshot(size, scope === "all");
        },
        snapshotPart: (bytes) => screen.partOfSnapshot(bytes),
        snapshotEnd: (_, rendered) => screen.endSnapshot(rendered),
        output: (bytes, _, rendered) => {
          screen.write(bytes, rendered);
          if (this.waiting > 0) this.#count();
        },
        resize: (size) => screen.resize(size),
        title: (title) => (this.title = title),
        cwd: (cwd) => (this.cwd = cwd),
        bell: () => {
          this.rang = Date.now();
          this.rangUnseen ||= document.visibilityState !== "visible";
        },
        notify: (title, body) => {
          // To a hidden page, the board tells it.
          if (document.visibilityState === "visible") notice(title || this.title || "Notification", { body });
        },
        url: (url, open) => {
          if (open) notice("The program asks you to open a page", { body: url, href: url, action: "Open the page" });
        },
        presence: (clients, you) => {
          this.others = Math.max(clients.length - 1, 0);
          this.#wanted = false;
          this.#is(you);
        },
        exit: (status) => (this.exit = status),
        unsent: () => this.#count(),
        error: (error) => {
          // Whoever may only look does not own the size, which "Use my size" asks for by itself.
          const known = error.code === "input_hole" || (error.code === "not_allowed" && !this.you.write);
          if (error.source === "server" && !known) notice("The session says", { body: error.message });
        },
      },
    });
  }

  /** The connection is over, and the session is not. */
  #again(): void {
    this.#client = newClientId();
    this.#connection?.dispose();
    this.exit = undefined;
    this.skipped = 0;
    this.state = { name: "connecting" };
    // What was not sent waits for the same decision.
    this.#connection = this.#connect(reloadedFrom(this.#client), this.#connection?.unsent);
    this.#count();
  }

  #became(state: ConnectionState): void {
    this.state = state;
    this.due = state.name === "reconnecting" ? Date.now() + state.delay : 0;
    this.#count();
  }

  #is(you: You): void {
    this.you = you;
    this.screen.framed = !you.size;
  }

  #typed(data: string): void {
    const held = this.#held();
    this.type(held.ctrl || held.alt ? modified(data, held) : data);
    if (held.ctrl || held.alt) this.modifiers = afterKey(this.modifiers);
  }

  #held(): { ctrl: boolean; alt: boolean } {
    return { ctrl: this.modifiers.ctrl !== "off", alt: this.modifiers.alt !== "off" };
  }

  #windowed(size: Size): void {
    if (this.#connection) this.#connection.resize(size);
    // The first layout may come before the constructor is done.
    else queueMicrotask(() => this.#start());
  }

  /** Back in front of this device: its size rules again, if that is what the device wants. */
  #shown = (): void => {
    if (document.visibilityState !== "visible") return;
    this.rangUnseen = false;
    // The line may have died meanwhile, and with it what is said now: until the session is heard again, it is to be repeated.
    this.#wanted = true;
    this.#claimAgain();
  };

  #claimAgain(): void {
    const visible = document.visibilityState === "visible";
    if (visible && settings.useMySize && this.framed && this.you.write) this.#connection?.claimSize(this.screen.window);
  }

  #count(): void {
    this.unsent = this.#connection?.unsent;
    this.waiting = this.state.name === "open" ? 0 : (this.#connection?.waiting ?? 0);
  }

  #refused(why: NotTaken): void {
    this.#refusals++;
    if (this.#disposed) return;
    if (why === "full" && this.unsent)
      notice("Not typed", { body: "Too much waits already. Send or discard what was not sent, then type again." });
    else if (why === "full")
      notice("Not typed", { body: "This is more than can wait to be sent. Paste less at once." });
    else if (why === "read-only") notice("Look only", { body: "This login may watch the session, and not type." });
  }

  async #copied(request: ClipboardRequest): Promise<void> {
    if (request.kind === "too-large") {
      notice("Not copied", {
        body: `The program wants ${request.bytes} bytes on the clipboard; ${CLIPBOARD_LIMIT} are allowed.`,
      });
    } else if (request.kind === "write" && !(await copy(request.text))) {
      notice("Not copied", { body: "The browser does not let this page write to the clipboard now." });
    }
  }
}

/** How terminals look on this device, in light or dark. */
export function looksOf(dark: boolean): Looks {
  const { fontSize, fontFamily, scrollback, cursorBlink, screenReader, gpu } = settings;
  return { theme: dark ? DARK : LIGHT, fontSize, fontFamily, scrollback, cursorBlink, screenReader, gpu };
}
