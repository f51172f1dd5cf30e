/** What the folder picker offers: recent folders, other places, and the folders in the one that is open. */
import type { FolderList } from "@bowline/client";

export interface FolderOption {
  readonly group: "recent" | "place" | "folder";
  readonly path: string;
  /** What is shown of it. */
  readonly label: string;
  readonly git: boolean;
}

/** A folder above the open one, or the open one itself. */
export interface Crumb {
  readonly name: string;
  readonly path: string;
}

/** The path of a folder in `parent`. */
export function childPath(parent: string, name: string): string {
  return parent.endsWith("/") ? parent + name : `${parent}/${name}`;
}

/** The way to a folder: from the root that has it, or only the folder if none does. */
export function crumbsOf({ path, roots }: Pick<FolderList, "path" | "roots">): readonly Crumb[] {
  const root = rootOf(path, roots);
  if (root === undefined) return [{ name: plainText(path), path }];
  const crumbs: Crumb[] = [{ name: plainText(root), path: root }];
  for (const name of path.slice(root.length).split("/").filter(Boolean)) {
    crumbs.push({ name: plainText(name), path: childPath(crumbs.at(-1)!.path, name) });
  }
  return crumbs;
}

/** The options that contain the filter; among folders, those that begin with it come first. */
export function folderOptions(
  list: FolderList | undefined,
  recent: readonly string[],
  filter: string,
): readonly FolderOption[] {
  const wanted = filter.trim().toLowerCase();
  const matches = (text: string) => text.toLowerCase().includes(wanted);
  const option = (group: FolderOption["group"], path: string, label = path, git = false): FolderOption => ({
    group,
    path,
    label: plainText(label),
    git,
  });
  const places = list?.roots.filter((root) => root !== rootOf(list.path, list.roots)) ?? [];
  const folders = list?.folders.filter(({ name }) => matches(name)) ?? [];
  const begins = (name: string) => Number(name.toLowerCase().startsWith(wanted));
  return [
    ...recent.filter(matches).map((path) => option("recent", path)),
    ...places.filter(matches).map((path) => option("place", path)),
    ...folders
      .sort((a, b) => begins(b.name) - begins(a.name))
      .map(({ name, git }) => option("folder", childPath(list!.path, name), name, git)),
  ];
}

/** A name without characters that hide or reorder others. */
export function plainText(name: string): string {
  return name.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, "\ufffd");
}

/** The longest root that has this path. */
function rootOf(path: string, roots: readonly string[]): string | undefined {
  return roots
    .filter((root) => path === root || path.startsWith(childPath(root, "")))
    .sort((a, b) => b.length - a.length)[0];
}
