/** Turns the dialog's form into a request, which is repeated unchanged until it succeeds or the form changes. */
import { type NewAgent, type NewTerminal, newClientId, type Size } from "@bowline/client";
import { HOME } from "./choices.ts";

export interface TerminalForm {
  readonly kind: "terminal";
  /** A line for a shell; the default shell if empty. */
  command: string;
  folder: string;
  name: string;
}

export interface AgentForm {
  readonly kind: "agent";
  agent: string;
  folder: string;
  name: string;
  /** Empty for the agent's own, like the model. */
  mode: string;
  model: string;
  /** The id of a conversation to continue. */
  conversation: string;
  prompt: string;
}

/** A request for a new session, with its idempotency key. */
export type SessionRequest =
  | { readonly kind: "terminal"; readonly key: string; readonly body: NewTerminal }
  | { readonly kind: "agent"; readonly key: string; readonly body: NewAgent };

/**
 * The last request. The same form gives the same request, with the same key, so that a lost response does not lead to a second
 * session. The whole body is kept: the gateway refuses a key that comes with another size, or another id of the prompt.
 */
export class LastRequest {
  #form = "";
  #request: SessionRequest | undefined;

  /** The request for this form. `size` estimates the size of a new terminal. */
  for(form: TerminalForm | AgentForm, size: () => Size | undefined): SessionRequest {
    const text = JSON.stringify(form);
    if (this.#request && this.#form === text) return this.#request;
    this.#form = text;
    const key = newClientId();
    this.#request =
      form.kind === "terminal"
        ? { kind: "terminal", key, body: terminalBody(form, size()) }
        : { kind: "agent", key, body: agentBody(form) };
    return this.#request;
  }
}

function terminalBody({ command, folder, name }: TerminalForm, size: Size | undefined): NewTerminal {
  return {
    ...(name ? { name } : {}),
    // Let a shell parse the command line.
    ...(command.trim() ? { argv: ["/bin/sh", "-c", command.trim()] } : {}),
    ...(folder.trim() ? { cwd: folder.trim() } : {}),
    ...(size ? { size } : {}),
  };
}

function agentBody({ agent, folder, name, mode, model, conversation, prompt }: AgentForm): NewAgent {
  return {
    agent,
    cwd: folder.trim() || HOME,
    ...(name ? { name } : {}),
    ...(conversation.trim() ? { resume: conversation.trim() } : {}),
    ...(mode ? { mode } : {}),
    ...(model ? { model } : {}),
    ...(prompt.trim() ? { prompt: { id: newClientId(), text: prompt.trim() } } : {}),
  };
}

/** Whether a text can be the id of a conversation. */
export function isConversation(text: string): boolean {
  return /^[A-Za-z0-9._:][A-Za-z0-9._:-]{0,127}$/.test(text.trim());
}
