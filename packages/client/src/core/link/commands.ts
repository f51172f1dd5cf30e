/** Commands on their way: each is repeated on the next connection until it is answered. */
import { COMMANDS } from "../config.js";

/** A command and its id. */
export interface Command {
  readonly id: string;
  readonly command: unknown;
}

/** The commands without an answer, oldest first. */
export class Commands {
  #waiting: Command[] = [];
  /** How many of them this connection has carried. */
  #carried = 0;

  /** Keeps a command. False when no more can be kept. */
  push(command: Command): boolean {
    if (this.#waiting.length >= COMMANDS) return false;
    this.#waiting.push(command);
    return true;
  }

  /** The next to send. */
  pop(): Command | undefined {
    const command = this.#waiting[this.#carried];
    if (command) this.#carried += 1;
    return command;
  }

  /** It was answered. */
  answered(id: string): void {
    const at = this.#waiting.findIndex((command) => command.id === id);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    if (at < this.#carried) this.#carried -= 1;
  }

  /** The connection is gone: all that wait are sent again. */
  disconnected(): void {
    this.#carried = 0;
  }

  /** Takes all of them back. */
  takeAll(): Command[] {
    this.#carried = 0;
    return this.#waiting.splice(0);
  }
}
