/**
 * Where in the app one is. Places live in the fragment, so that they work under any sub-path, survive a reload, and never reach
 * a server's log.
 */

/** A place in the app. */
export type Route =
  | { readonly name: "board" }
  | { readonly name: "session"; readonly id: string }
  | { readonly name: "settings" }
  | { readonly name: "help" };

/** Reads a place from a fragment; whatever makes no sense is the board. */
export function parseRoute(hash: string): Route {
  const [, name, id, ...rest] = hash.replace(/^#/, "").split("/");
  if (rest.length === 0) {
    if (name === "s" && id) return { name: "session", id: decode(id) };
    if ((name === "settings" || name === "help") && id === undefined) return { name };
  }
  return { name: "board" };
}

/** The fragment of a place. */
export function hrefOf(route: Route): string {
  switch (route.name) {
    case "board":
      return "#/";
    case "session":
      return `#/s/${encodeURIComponent(route.id)}`;
    default:
      return `#/${route.name}`;
  }
}

/** The one-time code of a login link's fragment: `#login=CODE`. */
export function loginCode(hash: string): string | undefined {
  const code = new URLSearchParams(hash.replace(/^#/, "")).get("login");
  return code || undefined;
}

/** The code in what somebody pasted: a whole link, its fragment, or the code alone. */
export function pastedCode(text: string): string | undefined {
  const trimmed = text.trim();
  const at = trimmed.indexOf("#");
  if (at >= 0) return loginCode(trimmed.slice(at));
  if (trimmed.startsWith("login=")) return loginCode(trimmed);
  return /^[A-Za-z0-9._~-]+$/.test(trimmed) ? trimmed : undefined;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
