/** What users see of an agent's modes before a session is started, when only the ids of the modes are known. */

export interface ModeText {
  readonly name: string;
  /** What the agent does in this mode; empty if that is not known. */
  readonly about: string;
  /** Whether the agent acts without requesting approvals. */
  readonly skipsApprovals: boolean;
}

/** By the letters of the id: agents spell the same mode differently, such as `autoEdit` and `auto_edit`. */
const KNOWN: Readonly<Record<string, Omit<ModeText, "skipsApprovals">>> = {
  default: { name: "Default", about: "Asks before it changes anything" },
  acceptedits: { name: "Accept edits", about: "Edits files of the project without asking" },
  autoedit: { name: "Accept edits", about: "Edits files of the project without asking" },
  plan: { name: "Plan", about: "Plans first, and changes nothing" },
  auto: { name: "Auto", about: "A model decides what needs your approval" },
  ask: { name: "Ask", about: "Answers questions, and changes nothing" },
  agent: { name: "Agent", about: "" },
  build: { name: "Build", about: "Works on the project" },
  readonly: { name: "Read only", about: "Reads files; asks before it changes anything" },
  workspacewrite: { name: "Workspace", about: "Changes files in its folder; asks before anything else" },
  yolo: { name: "YOLO", about: "Does everything without asking" },
  bypasspermissions: { name: "Bypass permissions", about: "Does everything without asking" },
  dontask: { name: "Don’t ask", about: "Never asks; settings of the agent decide what is allowed" },
  agentfullaccess: { name: "Full access", about: "Does everything without a sandbox, and never asks" },
  fullaccess: { name: "Full access", about: "Does everything without a sandbox, and never asks" },
  dangerfullaccess: { name: "Full access", about: "Does everything without a sandbox, and never asks" },
  autoapprove: { name: "Approve all", about: "Does everything without asking" },
  approveall: { name: "Approve all", about: "Does everything without asking" },
};

/** The modes that the server offers only where its configuration allows them (`allow_bypass`), by their letters. */
const WITHOUT_APPROVALS: ReadonlySet<string> = new Set([
  "yolo",
  "bypasspermissions",
  "dontask",
  "agentfullaccess",
  "fullaccess",
  "dangerfullaccess",
  "autoapprove",
  "approveall",
]);

/** Describes a mode by its id. The name of an unknown one is its id. */
export function modeText(id: string): ModeText {
  const letters = id.replace(/[-_]/g, "").toLowerCase();
  const known = Object.hasOwn(KNOWN, letters) ? KNOWN[letters] : undefined;
  return { name: id, about: "", ...known, skipsApprovals: WITHOUT_APPROVALS.has(letters) };
}
