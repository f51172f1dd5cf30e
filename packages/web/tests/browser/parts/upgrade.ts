/** Simulates an upgrade of the gateway: the app's files get other names, and the old names are not found. */
import type { ProxyResponse, PrefixProxy } from "./proxy.ts";

/** Derives a next version of the app from the one behind the proxy. The returned function makes the proxy serve it. */
export async function nextVersion(proxy: PrefixProxy): Promise<() => void> {
  const load = async (path: string): Promise<ProxyResponse> => {
    const response = await fetch(`${proxy.url}/${path}`);
    const { "content-length": _, "content-encoding": __, etag: ___, ...headers } = Object.fromEntries(response.headers);
    return { status: response.status, headers, body: await response.text() };
  };
  const worker = await load("sw.js");
  const names = [...worker.body.matchAll(/assets\/([\w.-]+)/g)].map((match) => match[1]!);
  const version = worker.body.match(/\b[0-9a-f]{12}\b/)![0];
  const newName = (name: string) => name.replace("-", "-next-");
  const renamed = (body: string) => names.reduce((text, name) => text.replaceAll(name, newName(name)), body);
  const files = new Map<string, ProxyResponse>();
  for (const path of ["", "sw.js", ...names.map((name) => `assets/${name}`)]) {
    const { body, ...rest } = await load(path);
    files.set(`/${path}`, { status: 404, headers: {}, body: "not found" });
    const text = renamed(body);
    files.set(`/${renamed(path)}`, { ...rest, body: path === "sw.js" ? text.replace(version, "next") : text });
  }
  return () => {
    proxy.override = (path) => files.get(path);
  };
}
