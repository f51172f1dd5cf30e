/** Decides which targets of an agent's text become links, and what the user sees of them. */
import type { Nodes } from "mdast";
import { visible } from "./visible.ts";

/** A target as the user sees it. */
export interface Target {
  /** What the browser opens; none if the target is only shown. */
  readonly href?: string;
  /** Where it leads, in words that the link's own text cannot change; empty if the text already says it. */
  readonly shown: string;
}

const ALLOWED: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);
/** Longer targets are cut where they are shown. */
const MAX_SHOWN = 120;

/** What becomes of a target with this text. Only absolute web and mail addresses can be opened. */
export function linkTarget(target: string, text: string): Target {
  const url = parseUrl(target);
  if (!url || !ALLOWED.has(url.protocol)) return { shown: text === target ? "" : shorten(target) };
  if (url.protocol === "mailto:") {
    const address = url.pathname + url.search;
    return { href: url.href, shown: text === address || text === target ? "" : shorten(address) };
  }
  // `https://good.example@bad.example/` leads to `bad.example`, so the names before the host never go.
  url.username = "";
  url.password = "";
  return { href: url.href, shown: namesTarget(text, url) ? "" : shorten(url.host) };
}

/** Whether a text is an address that leads to `url`, with its host as it is on the wire. */
function namesTarget(text: string, url: URL): boolean {
  const named = parseUrl(text.startsWith("www.") ? `http://${text}` : text);
  return named?.href === url.href && text.toLowerCase().includes(url.host) && visible(text) === text;
}

function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

function shorten(text: string): string {
  const start = visible(text.slice(0, MAX_SHOWN));
  return text.length > MAX_SHOWN ? `${start}…` : start;
}

/** The text of a tree, without its structure. */
export function plainText(nodes: readonly Nodes[]): string {
  return nodes
    .map((node) => {
      if ("children" in node) return plainText(node.children);
      if (node.type === "image" || node.type === "imageReference") return node.alt ?? "";
      return "value" in node ? node.value : "";
    })
    .join("");
}
