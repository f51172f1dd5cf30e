/** The start of most connection tests: a viewer attached to a session that has printed something. */
import { expect } from "vitest";
import type { ConnectionEnd } from "../../src/index.js";
import { Session } from "./session.js";
import { Viewer } from "./viewer.js";
import { World } from "./world.js";

/** The connection breaks without a close frame. */
export const CUT: ConnectionEnd = { kind: "code", code: 1006, reason: "", done: false };

/** The server closes the connection with this code. */
export function closed(code: number, reason = ""): ConnectionEnd {
  return { kind: "code", code, reason, done: false };
}

/** A viewer that is attached and shows the bytes 1, 2, 3. */
export async function attached(more: ConstructorParameters<typeof Viewer>[1] = {}) {
  const world = new World();
  const session = new Session(world);
  session.print([1, 2, 3]);
  const viewer = new Viewer(world, more);
  await world.advance(100);
  expect(viewer.connection.state.name).toBe("open");
  return { world, session, viewer, connection: viewer.connection };
}
