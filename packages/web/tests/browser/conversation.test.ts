/** A conversation with an agent, followed from Node through a real gateway that is killed on the way. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  AgentConnection,
  type AgentRecord,
  Api,
  EventsConnection,
  newClientId,
  plainEnvironment,
  Post,
  readRecord,
  wsSockets,
} from "@bowline/client";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { TestServer } from "./parts/server.ts";
import { until } from "./parts/until.ts";

test("R40: a killed gateway neither loses nor repeats an event of a conversation", async () => {
  const server = await TestServer.start();
  onTestFinished(() => server.stop());
  const token = await server.bowline("token", "create", "--name", "test", "--scope", "admin");
  const api = new Api({ base: server.url, auth: { kind: "bearer", token } });
  const { id } = await api.createAgent({ agent: "fake", cwd: server.folder });

  const environment = plainEnvironment(wsSockets(WebSocket));
  const post = new Post({ api, environment, on: {} });
  onTestFinished(() => post.dispose());
  const backoff = { base: 20, cap: 200, tries: null };
  const events = new EventsConnection({ environment, backoff, target: api.eventsTarget(newClientId()), on: {} });
  onTestFinished(() => events.dispose());
  let records: AgentRecord[] = [];
  let resets = 0;
  const conversation = new AgentConnection({
    environment,
    backoff,
    api,
    events,
    session: id,
    on: {
      reset: (page) => {
        resets += 1;
        records = [...page.records];
      },
      events: (more) => {
        records.push(...more);
        for (const record of more) post.handleEvent(id, record);
      },
    },
  });
  onTestFinished(() => conversation.dispose());
  const shown = () => JSON.stringify([conversation.state, records.at(-1)]);
  const has = (type: string) => records.some(({ event }) => event.type === type);
  await until("it is followed", () => conversation.state.name === "open", shown);

  const [working, go] = [join(server.folder, "working"), join(server.folder, "go")];
  const text = `chunks 300 5\ntouch ${working}\nwait ${go}\nchunks 300 5\nsay Done.`;
  post.send(id, { type: "prompt", text });
  await until("the agent works", () => existsSync(working) && has("text"), shown);
  await server.killGateway();
  // The agent goes on without a gateway, and prompts wait for it.
  writeFileSync(go, "");
  post.send(id, { type: "prompt", text: "say And this." });
  await until("it was tried", () => post.entries.at(-1)?.state.name === "retrying", shown);
  await server.startGateway();
  await until(
    "both runs have ended",
    () => records.filter(({ event }) => event.type === "complete").length === 2,
    shown,
  );
  expect(post.entries.map(({ state }) => state.name)).toEqual(["delivered", "delivered"]);
  expect(conversation.conversation?.activity).toBeNull();

  // The same watch continues in the session's next life.
  await api.end(id, { keep: true });
  await until("the session has ended", () => conversation.conversation?.exit, shown);
  await api.restart(id);
  await until("it was started again", () => conversation.conversation?.exit === undefined, shown);

  const page = await until("all events have arrived", async () => {
    const all = await api.history(id, { limit: 1000 });
    return all.next === (records.at(-1)?.seq ?? 0) + 1 ? all : undefined;
  });
  expect(records.map(({ seq, from = seq }) => from)).toEqual([0, ...records.slice(0, -1).map(({ seq }) => seq + 1)]);
  expect(textOf(records)).toBe(textOf(page.events.map(readRecord)));
  expect(textOf(records)).toMatch(/^0{5}1{5}.*Done\.And this\.$/);
  expect(conversation.conversation).toEqual(page.state);
  expect(resets, "history is read once").toBe(1);
});

function textOf(records: readonly AgentRecord[]): string {
  return records.map(({ event }) => (event.type === "text" ? event.delta : "")).join("");
}
