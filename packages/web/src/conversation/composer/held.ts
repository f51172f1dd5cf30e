/** Changes of settings that failed: they are no messages, but keep the messages after them from being sent. A plain module. */
import type { PostEntry } from "@bowline/client";
import { laneOf } from "@bowline/client/core";

/** Whether an entry is a change of a setting of this session that failed. */
export function isFailedSetting({ session: to, command, state }: PostEntry, session: string): boolean {
  return to === session && command?.type === "set" && state.name === "failed";
}

/** Whether a message that is held waits for nothing but failed changes of settings. `entries` are in the order of sending. */
export function isHeldBySetting(entries: readonly PostEntry[], id: string): boolean {
  const place = entries.findIndex((entry) => entry.id === id);
  const held = entries[place];
  if (held?.state.name !== "waiting" || held.state.why !== "held") return false;
  const failed = entries
    .slice(0, place)
    .filter(
      ({ session, command, state }) =>
        session === held.session && laneOf(command) === "ordered" && state.name === "failed",
    );
  return failed.length > 0 && failed.every((entry) => isFailedSetting(entry, held.session));
}
