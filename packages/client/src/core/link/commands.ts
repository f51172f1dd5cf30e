/** Commands that have no answer yet. Each is sent again on every new connection until it is answered. */
import { COMMANDS } from "../config.js";

export interface Command {
  readonly id: string;
  readonly command: unknown;
}

/** The commands without an answer, in the order in which they were given. */
export class Commands {
  #unanswered: Command[] = [];
  /** How many of them were sent on this connection. */
  #sent = 0;

  /** Adds a command. Returns false if there are too many. */
  push(command: Command): boolean {
    if (this.#unanswered.length >= COMMANDS) return false;
    this.#unanswered.push(command);
    return true;
  }

  /** The next command to send. */
  pop(): Command | undefined {
    const command = this.#unanswered[this.#sent];
    if (command) this.#sent += 1;
    return command;
  }

  handleAnswer(id: string): void {
    const at = this.#unanswered.findIndex((command) => command.id === id);
    if (at < 0) return;
    this.#unanswered.splice(at, 1);
    if (at < this.#sent) this.#sent -= 1;
  }

  /** The connection was lost: all unanswered commands must be sent again. */
  handleDisconnected(): void {
    this.#sent = 0;
  }

  /** Removes and returns all unanswered commands. */
  drain(): Command[] {
    this.#sent = 0;
    return this.#unanswered.splice(0);
  }
}
