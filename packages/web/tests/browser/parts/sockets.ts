/** What a page's WebSockets did: a script for the page, and its account. */
import type { Page } from "playwright-core";

/** A socket of the page's. */
export interface SocketFacts {
  readonly url: string;
  /** The browser's own word: 1 is open. */
  readonly state: number;
  /** The verdict of `attached`, and its reason. */
  readonly verdict: string;
  readonly reason: string;
  /** The code that it was closed with. */
  readonly code: number;
}

/** Runs in the page before anything else: notes every WebSocket. */
export function watchSockets(): void {
  const Real = WebSocket;
  const seen: { socket: WebSocket; verdict: string; reason: string; code: number }[] = [];
  const sockets = () =>
    seen.map(({ socket, verdict, reason, code }) => ({
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
      seen.push(facts);
      this.addEventListener("close", ({ code }) => (facts.code = code));
      this.addEventListener("message", ({ data }) => {
        if (typeof data !== "string" || !data.includes('"attached"')) return;
        const { type, verdict, reason } = JSON.parse(data) as { type: string; verdict: string; reason?: string };
        if (type === "attached") Object.assign(facts, { verdict, reason: reason ?? "" });
      });
    }
  };
}

/** The page's sockets to sessions, in the order of their making. */
export async function attachSockets(page: Page): Promise<SocketFacts[]> {
  const all = await page.evaluate(() => (window as unknown as { sockets(): SocketFacts[] }).sockets());
  return all.filter(({ url }) => url.includes("/attach"));
}
