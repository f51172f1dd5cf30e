/** Conversations over one simulated event stream. */
import { EventsConnection } from "../../src/index.js";
import { Gateway } from "./gateway.js";
import { Journal, piece } from "./journal.js";
import { Reader } from "./reader.js";
import { World } from "./world.js";

export const A = "aaaaaaaaaaaa";
export const B = "bbbbbbbbbbbb";

/** One event stream, journals of nine pieces of text each, and readers of them. */
export function openJournals(...ids: string[]) {
  const world = new World();
  const journals = (ids.length ? ids : [A]).map((id) => new Journal(id));
  for (const journal of journals) for (let i = 0; i < 9; i++) journal.append(piece(String(i)));
  const gateway = new Gateway(world, ...journals);
  const stream = () =>
    new EventsConnection({
      environment: world.environment,
      target: () => ({ url: "ws://test/", protocols: [] }),
      on: {},
    });
  const events = stream();
  const read = (session = A, more = {}) => new Reader(world, gateway, events, session, more);
  return { world, journal: journals[0]!, journals, gateway, events, read, stream };
}
