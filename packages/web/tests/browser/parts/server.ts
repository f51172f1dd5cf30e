/** A test installation: its own directories, a gateway on a free port, and real sessions, all removed at the end. */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { until } from "./until.ts";

/** The binary under test. */
export const BOWLINE = resolve(
  process.env["BOWLINE_BIN"] ?? join(import.meta.dirname, "../../../../../target/debug/bowline"),
);

/** An agent that does what its prompts say; fixtures/fake-agent/README.md lists the instructions. */
const FAKE_AGENT = resolve(import.meta.dirname, "../../../../../fixtures/fake-agent/agent.mjs");

/** The prompt of the shells in tests. */
export const PROMPT = "ready> ";

/** What another process needs to use a running test server. */
export interface ServerAddress {
  readonly folder: string;
  readonly url: string;
}

export class TestServer {
  readonly folder: string;
  url = "";
  /** The login link that the gateway printed when it started. */
  firstLink = "";
  #gateway: ChildProcess | undefined;
  readonly #flags: readonly string[];

  private constructor(folder: string, flags: readonly string[]) {
    this.folder = folder;
    this.#flags = flags;
  }

  /** Starts a new server, with additional flags for its gateway. */
  static async start(...flags: string[]): Promise<TestServer> {
    if (!existsSync(BOWLINE)) throw new Error(`${BOWLINE} does not exist; run \`make browser-test\` to build it`);
    const server = new TestServer(mkdtempSync(join(tmpdir(), "bowline-web-")), flags);
    const fake = JSON.stringify([process.execPath, FAKE_AGENT]);
    // There, the agent keeps its conversations.
    const env = `{ FAKE_AGENT_STATE = ${JSON.stringify(join(server.folder, "agent"))} }`;
    writeFileSync(
      join(server.folder, "config.toml"),
      `[agents.fake]\nprotocol = "acp"\ncommand = ${fake}\nenv = ${env}\n`,
    );
    writeFileSync(join(server.folder, ".bashrc"), `PS1='${PROMPT}'\nunset PROMPT_COMMAND HISTFILE\n`);
    servers.add(server);
    await server.startGateway();
    return server;
  }

  /** Uses a server that another process started and stops. */
  static join({ folder, url }: ServerAddress): TestServer {
    const server = new TestServer(folder, []);
    server.url = url;
    return server;
  }

  /** The environment of the gateway and all commands. */
  get env(): Record<string, string> {
    return {
      PATH: process.env["PATH"] ?? "",
      HOME: this.folder,
      SHELL: "/bin/sh",
      LANG: "C.UTF-8",
      PS1: PROMPT,
      BOWLINE_STATE_DIR: join(this.folder, "s"),
      BOWLINE_RUNTIME_DIR: join(this.folder, "r"),
      BOWLINE_CONFIG: join(this.folder, "config.toml"),
    };
  }

  /** Starts the gateway at its previous address. Retries, since another socket may hold that port for a moment. */
  async startGateway(): Promise<void> {
    const unlessTaken = (error: Error) => {
      if (!/address already in use/i.test(error.message)) throw error;
      return false;
    };
    await until("the gateway's address is free", () => this.#serve().then(() => true, unlessTaken));
  }

  async #serve(): Promise<void> {
    const listen = this.url ? new URL(this.url).host : "127.0.0.1:0";
    // All tests log in from one address.
    const args = ["serve", "--listen", listen, "--limit", "login_rate=10000", ...this.#flags];
    const gateway = spawn(BOWLINE, args, {
      env: { ...this.env, RUST_LOG: "warn" },
      cwd: this.folder,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#gateway = gateway;
    let stderr = "";
    gateway.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
    await new Promise<void>((started, failed) => {
      gateway.once("exit", (code) => failed(new Error(`the gateway exited with ${code}: ${stderr}`)));
      createInterface({ input: gateway.stdout }).on("line", (line) => {
        this.url = /^listening on (\S+)/.exec(line)?.[1] ?? this.url;
        const link = /^log in with (\S+)/.exec(line)?.[1];
        if (link === undefined) return;
        this.firstLink = link;
        started();
      });
    });
  }

  /** Kills the gateway with SIGKILL. */
  async killGateway(): Promise<void> {
    const gateway = this.#gateway;
    this.#gateway = undefined;
    if (!gateway || gateway.exitCode !== null) return;
    const gone = new Promise((exited) => gateway.once("exit", exited));
    gateway.kill("SIGKILL");
    await gone;
  }

  /** Runs a command and returns what it printed. */
  bowline(...args: string[]): Promise<string> {
    return new Promise((done, failed) =>
      execFile(BOWLINE, args, { env: this.env, cwd: this.folder, maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
        error ? failed(new Error(`bowline ${args.join(" ")}: ${stderr}`)) : done(stdout.trimEnd()),
      ),
    );
  }

  /** Starts a session that runs this program. Returns its id. */
  new(...argv: string[]): Promise<string> {
    return this.bowline("new", "--detach", "--", ...argv);
  }

  /** Starts a session with an interactive shell. Returns its id. */
  shell(name?: string): Promise<string> {
    return this.bowline(
      "new",
      "--detach",
      ...(name ? ["--name", name] : []),
      "--",
      "bash",
      "--rcfile",
      join(this.folder, ".bashrc"),
      "-i",
    );
  }

  /** Starts a conversation with the fake agent. Returns its id. */
  async agent(name?: string, prompt = "say Hello."): Promise<string> {
    const id = await this.bowline("agent", "fake", "--detach", ...(name ? ["--name", name] : []), "--", prompt);
    return id.trim();
  }

  /** Creates a login link for one browser. */
  loginLink(url = this.url): Promise<string> {
    return this.bowline("login-link", "--url", url);
  }

  /** The session's own view of its screen. */
  screen(id: string): Promise<string> {
    return this.bowline("screen", id);
  }

  /** Ends the gateway and all sessions, and removes the files. */
  stop(): void {
    if (!servers.delete(this)) return;
    this.#gateway?.kill("SIGKILL");
    try {
      execFileSync(BOWLINE, ["kill", "--all", "--grace", "0s"], { env: this.env, stdio: "ignore" });
    } finally {
      rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    }
  }
}

const servers = new Set<TestServer>();
// Also if a test makes the process exit.
process.on("exit", () => [...servers].forEach((server) => server.stop()));
