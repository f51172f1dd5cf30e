/** What the line above the composer says, in every frame, while other things happen. */
import { expect, test } from "vitest";
import { browserSuite } from "./parts/app.ts";
import { Conversation, Gate } from "./parts/conversation.ts";
import { until } from "./parts/until.ts";

const { server, open } = browserSuite();

interface Frame {
  /** `busy`, `ready` or what else the line says. */
  readonly line: string;
  readonly approvals: number;
  readonly messages: number;
}

/** Records what is shown, whenever a frame differs from the one before. */
async function sample(chat: Conversation): Promise<void> {
  await chat.page.evaluate(() => {
    const frames: unknown[] = [];
    let last = "";
    const look = () => {
      const one = (id: string) => document.querySelector(`[data-testid="${id}"]`);
      const line = one("activity") ? "busy" : (one("connection")?.textContent ?? "").trim();
      const approvals = document.querySelectorAll('[data-testid="approval"]').length;
      const messages = document.querySelectorAll('[data-testid="message"]').length;
      const frame = { line, approvals, messages };
      if (JSON.stringify(frame) !== last) frames.push(frame);
      last = JSON.stringify(frame);
      requestAnimationFrame(look);
    };
    look();
    Object.assign(window, { frames });
  });
}

const framesOf = (chat: Conversation) => chat.page.evaluate(() => (window as unknown as { frames: Frame[] }).frames);

/** The lines that were shown, without repeats. */
async function linesOf(chat: Conversation): Promise<string[]> {
  const lines = (await framesOf(chat)).map(({ line }) => line);
  return lines.filter((line, i) => line !== lines[i - 1]);
}

test("R35: there is activity from the click to the last event, without a gap", async () => {
  const chat = await Conversation.visit(await open(), await server.agent());
  await chat.ends(1);
  await chat.isReady();
  await sample(chat);
  await chat.send("think Hm.\nsay One.\ntool ls\nsay Two.");
  await chat.ends(2);
  await chat.isReady();
  expect(await linesOf(chat)).toEqual(["Ready", "busy", "Ready"]);
});

test("R35: a run of another session ends, and changes nothing here", async () => {
  const [viewed, other] = [await server.agent(), await server.agent()];
  const chat = await Conversation.visit(await open(), viewed);
  await chat.ends(1);
  const gates = [new Gate(server), new Gate(server)] as const;
  await chat.send(`${gates[0].instructions}\nsay Viewed.`);
  await gates[0].reached();
  await server.bowline("send", other, "--", `${gates[1].instructions}\nsay Other.`);
  await gates[1].reached();
  await sample(chat);
  gates[1].open();
  await until("the other run has ended", async () => (await server.bowline("log", other)).includes("Other."));
  await server.bowline("kill", other);
  await chat.app.waitForPaint();
  expect(await linesOf(chat)).toEqual(["busy"]);
  gates[0].open();
  await chat.ends(2);
  await chat.isReady();
  expect(await linesOf(chat)).toEqual(["busy", "Ready"]);
});

test("R36: an approval that was answered elsewhere goes, and never comes back", async () => {
  const id = await server.agent();
  const chat = await Conversation.visit(await open(), id);
  await chat.ends(1);
  await chat.send("ask w Write it\nsay Done.");
  await chat.app.byTestId("approval").waitFor();
  await sample(chat);
  await server.bowline("approve", `${id}/a0`);
  await chat.ends(2);
  await chat.isReady();
  const approvals = (await framesOf(chat)).map(({ approvals }) => approvals);
  expect(approvals.filter((count, i) => count !== approvals[i - 1])).toEqual([1, 0]);
  expect(await linesOf(chat)).toEqual(["busy", "Ready"]);
});

test("R35: a description from before the end of a run changes nothing, however late it comes", async () => {
  const id = await server.agent();
  const app = await open();
  let stale: string | undefined;
  let late = () => {};
  await app.page.routeWebSocket(/\/v1\/events/, (socket) => {
    const upstream = socket.connectToServer();
    upstream.onMessage((data) => {
      const text = String(data);
      const { type, session } = JSON.parse(text) as { type: string; session?: { id?: string; activity?: unknown } };
      if (type === "session" && session?.id === id && session.activity) stale = text;
      socket.send(data);
    });
    late = () => stale !== undefined && socket.send(stale);
  });
  await app.page.reload();
  const chat = await Conversation.visit(app, id);
  const gate = new Gate(server);
  await chat.send(`${gate.instructions}\nsay Done.`);
  await gate.reached();
  await until("the board has told of the run", () => stale !== undefined);
  gate.open();
  await chat.ends(2);
  await chat.isReady();
  await sample(chat);
  late();
  await app.waitForPaint();
  await app.waitForPaint();
  expect(await linesOf(chat)).toEqual(["Ready"]);
});
