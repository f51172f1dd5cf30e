/** Real agent programs, which talk to a stub of the model APIs. */
import { execFileSync, spawn } from "node:child_process";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { stopAfterTest } from "./app.ts";

const ROOT = resolve(import.meta.dirname, "../../../../..");

/** Starts the stub, which ends after the test. Returns its address. */
async function startStub(): Promise<string> {
  const stub = spawn(process.execPath, [resolve(ROOT, "fixtures/model-stub/stub.mjs")], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const gone = new Promise((exited) => stub.once("exit", exited));
  stopAfterTest({
    stop: async () => {
      stub.stdin.end();
      await gone;
    },
  });
  const [line] = (await new Promise<string[]>((started, failed) => {
    createInterface({ input: stub.stdout }).once("line", (line: string) => started([line]));
    stub.once("error", failed);
  })) as [string];
  return `http://127.0.0.1:${(JSON.parse(line) as { port: number }).port}`;
}

/** The lines of the configuration that let Claude Code run against a stub. `make agents` installs it. */
export async function configureClaude(): Promise<string> {
  const stub = await startStub();
  execFileSync(resolve(ROOT, "scripts/agents"), ["claude"], { stdio: ["ignore", "ignore", "inherit"] });
  const path = execFileSync(resolve(ROOT, "scripts/agents"), ["--path", "claude"], { encoding: "utf8" }).trim();
  const env = {
    PATH: `${path}:${process.env["PATH"] ?? ""}`,
    TERM: "dumb",
    ANTHROPIC_API_KEY: "dummy-key",
    ANTHROPIC_BASE_URL: stub,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
  };
  const pairs = Object.entries(env).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  return `[agents.claude]\nenv = { ${pairs.join(", ")} }\n`;
}
