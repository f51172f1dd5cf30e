/** Records the WebSockets of a page. */
import type { Page } from "playwright-core";

export interface SocketFacts {
  readonly url: string;
  /** `WebSocket.readyState`; 1 is open. */
  readonly state: number;
  /** The verdict of the `attached` message, and its reason. */
  readonly verdict: string;
  readonly reason: string;
  /** The close code, or 0. */
  readonly code: number;
}

/** An init script that records every WebSocket. */
export function watchSockets(): void {
  const Real = WebSocket;
  const recorded: { socket: WebSocket; verdict: string; reason: string; code: number }[] = [];
  const sockets = () =>
    recorded.map(({ socket, verdict, reason, code }) => ({
      url: socket.url,
      state: socket.readyState,
      verdict,
      reason,
      code,
    }));
  Object.assign(window, { sockets });
  window.WebSocket = class extends Real {
    constructor(url: string | URL, protocols?: string | string[]) {
      super(url, protocols);
      const facts = { socket: this as WebSocket, verdict: "", reason: "", code: 0 };
      recorded.push(facts);
      this.addEventListener("close", ({ code }) => (facts.code = code));
      this.addEventListener("message", ({ data }) => {
        if (typeof data !== "string" || !data.includes('"attached"')) return;
        const { type, verdict, reason } = JSON.parse(data) as { type: string; verdict: string; reason?: string };
        if (type === "attached") Object.assign(facts, { verdict, reason: reason ?? "" });
      });
    }
  };
}

/** The page's sockets to sessions, oldest first. */
export async function attachSockets(page: Page): Promise<SocketFacts[]> {
  const all = await page.evaluate(() => (window as unknown as { sockets(): SocketFacts[] }).sockets());
  return all.filter(({ url }) => url.includes("/attach"));
}
