/** A gateway of the next version, seen from the browser: the app's files have other names, and nothing is under the old ones. */
import type { Instead, PrefixProxy } from "./proxy.ts";

/** Makes the app's next version from the one that the proxy serves. The returned function puts it into its place. */
export async function nextVersion(proxy: PrefixProxy): Promise<() => void> {
  const served = async (path: string): Promise<Instead> => {
    const answer = await fetch(`${proxy.url}/${path}`);
    const { "content-length": _, "content-encoding": __, etag: ___, ...headers } = Object.fromEntries(answer.headers);
    return { status: answer.status, headers, body: await answer.text() };
  };
  const worker = await served("sw.js");
  const names = [...worker.body.matchAll(/assets\/([\w.-]+)/g)].map((match) => match[1]!);
  const version = worker.body.match(/\b[0-9a-f]{12}\b/)![0];
  const next = (name: string) => name.replace("-", "-next-");
  const renamed = (body: string) => names.reduce((text, name) => text.replaceAll(name, next(name)), body);
  const files = new Map<string, Instead>();
  for (const path of ["", "sw.js", ...names.map((name) => `assets/${name}`)]) {
    const { body, ...rest } = await served(path);
    files.set(`/${path}`, { status: 404, headers: {}, body: "no such file any more" });
    const text = renamed(body);
    files.set(`/${renamed(path)}`, { ...rest, body: path === "sw.js" ? text.replace(version, "next") : text });
  }
  return () => {
    proxy.instead = (path) => files.get(path);
  };
}
