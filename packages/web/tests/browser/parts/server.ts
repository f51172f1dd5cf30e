/** A world with a gateway in it: its own directories, real sessions, any free port. Whatever it started ends with it, by id. */
import { type ChildProcess, execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { until } from "./until.ts";

/** The program under test. */
export const BOWLINE = resolve(
  process.env["BOWLINE_BIN"] ?? join(import.meta.dirname, "../../../../../target/debug/bowline"),
);

/** What the shells of this world have as a prompt. */
export const PROMPT = "ready> ";

/** Where a world is, for whoever did not start it. */
export interface Place {
  readonly folder: string;
  readonly url: string;
}

/** The directories, and the gateway that serves them. */
export class World {
  readonly folder: string;
  url = "";
  /** The link that the gateway printed when it started. */
  firstLink = "";
  #gateway: ChildProcess | undefined;
  readonly #flags: readonly string[];

  private constructor(folder: string, flags: readonly string[]) {
    this.folder = folder;
    this.#flags = flags;
  }

  /** A new world, its gateway started with these further flags. */
  static async start(...flags: string[]): Promise<World> {
    if (!existsSync(BOWLINE)) throw new Error(`${BOWLINE} is not there: \`make browser-test\` builds it`);
    const world = new World(mkdtempSync(join(tmpdir(), "bowline-web-")), flags);
    writeFileSync(join(world.folder, "config.toml"), "");
    writeFileSync(join(world.folder, ".bashrc"), `PS1='${PROMPT}'\nunset PROMPT_COMMAND HISTFILE\n`);
    worlds.add(world);
    await world.startGateway();
    return world;
  }

  /** A world that somebody else started, and ends. */
  static join({ folder, url }: Place): World {
    const world = new World(folder, []);
    world.url = url;
    return world;
  }

  /** The environment of everything here. */
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

  /** Starts the gateway, at the address that it had before. Whoever dials meanwhile may be given that port for a moment. */
  async startGateway(): Promise<void> {
    const unlessTaken = (error: Error) => {
      if (!/address already in use/i.test(error.message)) throw error;
      return false;
    };
    await until("the gateway's address is free", () => this.#serve().then(() => true, unlessTaken));
  }

  async #serve(): Promise<void> {
    const listen = this.url ? new URL(this.url).host : "127.0.0.1:0";
    // Every test logs in from the same address.
    const args = ["serve", "--listen", listen, "--limit", "login_rate=10000", ...this.#flags];
    const gateway = spawn(BOWLINE, args, {
      env: { ...this.env, RUST_LOG: "warn" },
      cwd: this.folder,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#gateway = gateway;
    let said = "";
    gateway.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
    await new Promise<void>((started, failed) => {
      gateway.once("exit", (code) => failed(new Error(`the gateway ended with ${code}: ${said}`)));
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

  /** Runs a verb to its end; what it printed. */
  bowline(...args: string[]): Promise<string> {
    return new Promise((done, failed) =>
      execFile(BOWLINE, args, { env: this.env, cwd: this.folder, maxBuffer: 64 << 20 }, (error, stdout, stderr) =>
        error ? failed(new Error(`bowline ${args.join(" ")}: ${stderr}`)) : done(stdout.trimEnd()),
      ),
    );
  }

  /** A new session of this program; its id. */
  new(...argv: string[]): Promise<string> {
    return this.bowline("new", "--detach", "--", ...argv);
  }

  /** A new session of a shell that reads what is typed; its id. */
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

  /** A link that logs one browser in, as it calls the gateway. */
  loginLink(url = this.url): Promise<string> {
    return this.bowline("login-link", "--url", url);
  }

  /** What a session's screen shows, by its own account. */
  screen(id: string): Promise<string> {
    return this.bowline("screen", id);
  }

  /** Ends everything, and removes it. */
  stop(): void {
    if (!worlds.delete(this)) return;
    this.#gateway?.kill("SIGKILL");
    try {
      execFileSync(BOWLINE, ["kill", "--all", "--grace", "0s"], { env: this.env, stdio: "ignore" });
    } finally {
      rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    }
  }
}

const worlds = new Set<World>();
// Also when a test fails to the point of ending the process.
process.on("exit", () => [...worlds].forEach((world) => world.stop()));
