/** Reads what a tool call contains. Its fields come from the agent and may have any shape. */

/** A part of what a tool has produced. */
export type ToolPart =
  | { readonly kind: "text"; readonly text: string }
  /** A unified diff. */
  | { readonly kind: "diff"; readonly path: string; readonly diff: string }
  /** A file before and after; null if there was, or is, none. */
  | { readonly kind: "change"; readonly path: string; readonly before: string | null; readonly after: string | null }
  /** Something else, as JSON. */
  | { readonly kind: "other"; readonly json: string };

/** Parts beyond this many are left out. */
const MAX_PARTS = 200;
/** Characters of JSON that are shown of a value. */
const MAX_JSON = 20_000;

/** The parts of a tool's `content`. */
export function toolParts(content: unknown): ToolPart[] {
  if (content === undefined || content === null) return [];
  if (typeof content === "string") return content === "" ? [] : [{ kind: "text", text: content }];
  if (!Array.isArray(content)) return [{ kind: "other", json: jsonText(content) }];
  return content.slice(0, MAX_PARTS).flatMap((part: unknown) => toolPart(part));
}

function toolPart(part: unknown): ToolPart[] {
  const fields = Object(part) as Record<string, unknown>;
  const path = typeof fields["path"] === "string" ? fields["path"] : "";
  if (fields["type"] === "diff") {
    if (typeof fields["diff"] === "string") return [{ kind: "diff", path, diff: fields["diff"] }];
    const [before, after] = [textOrNull(fields["oldText"]), textOrNull(fields["newText"])];
    if (before !== undefined && after !== undefined) return [{ kind: "change", path, before, after }];
  }
  const block = (fields["type"] === "content" ? Object(fields["content"]) : fields) as Record<string, unknown>;
  if (typeof block["text"] === "string") return block["text"] === "" ? [] : [{ kind: "text", text: block["text"] }];
  return [{ kind: "other", json: jsonText(part) }];
}

function textOrNull(value: unknown): string | null | undefined {
  if (value === undefined || value === null) return null;
  return typeof value === "string" ? value : undefined;
}

/** The shell command that a tool runs, if its input has one. */
export function toolCommand(input: unknown): string | undefined {
  const { command } = Object(input) as { command?: unknown };
  if (typeof command === "string") return command;
  return Array.isArray(command) && command.every((word) => typeof word === "string") ? command.join(" ") : undefined;
}

/** What else the input has, as JSON; empty if nothing. */
export function toolInput(input: unknown, without: readonly string[]): string {
  if (input === undefined || input === null) return "";
  if (typeof input !== "object" || Array.isArray(input)) return jsonText(input);
  const rest = Object.entries(input).filter(([name]) => !without.includes(name));
  return rest.length === 0 ? "" : jsonText(Object.fromEntries(rest));
}

/** The files that a tool works on. */
export function toolFiles(locations: unknown): string[] {
  if (!Array.isArray(locations)) return [];
  const paths = locations.flatMap((location: unknown) => {
    const { path, line } = Object(location) as { path?: unknown; line?: unknown };
    if (typeof path !== "string") return [];
    return [typeof line === "number" ? `${path}:${line}` : path];
  });
  return [...new Set(paths)].slice(0, MAX_PARTS);
}

/** A path without the folder of the session, if it is in there. */
export function relativePath(path: string, cwd: string): string {
  return cwd !== "" && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}

function jsonText(value: unknown): string {
  const json = JSON.stringify(value, undefined, 2) as string | undefined;
  return (json ?? "").slice(0, MAX_JSON);
}
