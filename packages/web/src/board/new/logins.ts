/** How to log in to each agent, and where to read how to install those that no command installs. */
import type { AgentStatus, NewTerminal, Size } from "@bowline/client";

interface AgentHelp {
  /** The agent's own program for logging in. */
  readonly login: readonly string[];
  /** What to type in that program, if it does not begin with the login. */
  readonly type?: string;
  readonly installPage?: string;
}

const HELP: Readonly<Record<string, AgentHelp>> = {
  claude: { login: ["claude", "auth", "login"] },
  codex: { login: ["codex", "login"] },
  gemini: { login: ["gemini"], type: "/auth" },
  opencode: { login: ["opencode", "auth", "login"] },
  qwen: { login: ["qwen"], type: "/auth" },
  cursor: { login: ["cursor-agent", "login"], installPage: "https://cursor.com/cli" },
};

/** Whether it seems that the user has not logged in to this agent. The server guesses that, and says it in these words. */
export function seemsLoggedOut({ problem = "" }: AgentStatus): boolean {
  return problem.startsWith("seems not to be logged in");
}

/** Whether this page knows how to log in to an agent. */
export function canLogIn(agent: string): boolean {
  return helpFor(agent) !== undefined;
}

/** The terminal session in which the user logs in. Each agent has one: another one takes its place. */
export function loginSession(agent: string, size: Size | undefined): NewTerminal | undefined {
  const help = helpFor(agent);
  if (!help) return undefined;
  return { name: `login-${agent}`, argv: [...help.login], if_exists: "restart", ...(size ? { size } : {}) };
}

/** What the user has to do in that session. */
export function loginSteps(agent: string): string {
  const type = helpFor(agent)?.type;
  const first =
    type === undefined ? "Follow the steps in the terminal." : `If it does not ask you to log in, type ${type}.`;
  return `${first} Then start the session.`;
}

/** The page that says how to install an agent, for one without an install command. */
export function installPage(agent: string): string | undefined {
  return helpFor(agent)?.installPage;
}

function helpFor(agent: string): AgentHelp | undefined {
  return Object.hasOwn(HELP, agent) ? HELP[agent] : undefined;
}
