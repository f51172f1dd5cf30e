/**
 * The app's routes and login codes, both in the URL fragment. So they work under any sub-path and survive a
 * reload, and no server logs them.
 */

export type Route =
  | { readonly name: "board" }
  | { readonly name: "session"; readonly id: string }
  | { readonly name: "approvals" }
  | { readonly name: "settings" }
  | { readonly name: "help" };

/** Parses a fragment; an unknown one is the board. */
export function parseRoute(hash: string): Route {
  const [, name, id, ...rest] = hash.replace(/^#/, "").split("/");
  if (rest.length === 0) {
    if (name === "s" && id) return { name: "session", id: decode(id) };
    if ((name === "approvals" || name === "settings" || name === "help") && id === undefined) return { name };
  }
  return { name: "board" };
}

/** The fragment of a route. */
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

/** The one-time code in a login link's fragment: `#login=CODE`. */
export function loginCode(hash: string): string | undefined {
  const code = new URLSearchParams(hash.replace(/^#/, "")).get("login");
  return code || undefined;
}

/** The login code in pasted text: a whole link, its fragment, or only the code. */
export function codeFromPaste(text: string): string | undefined {
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
