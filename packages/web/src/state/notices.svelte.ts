/** Notices in the page: short, few, and gone by themselves. */

/** A notice. */
export interface Notice {
  readonly id: number;
  readonly title: string;
  readonly body: string;
  /** Where a click leads: a place in the app, or a link of the program's. */
  readonly href: string | undefined;
  /** What a click does, where it leads nowhere. */
  readonly act: (() => void) | undefined;
  /** What the link or the button is called. */
  readonly action: string;
  /** It is shown until somebody dismisses it. */
  readonly stays: boolean;
}

/** What a notice may have besides its title. */
export type More = Partial<Omit<Notice, "id" | "title">>;

/** As many are shown at a time; another one takes the oldest's place. */
const MOST = 3;
/** How long one is shown, in milliseconds, unless somebody points at it. A hidden page shows nothing, and so waits. */
const SHOWN_FOR = 8000;

/** The notices shown now, oldest first. */
export const notices: Notice[] = $state([]);
const timers = new Map<number, ReturnType<typeof setTimeout>>();
let last = 0;

/** Shows a notice. One with the same words takes the place of the first. */
export function notice(title: string, more: More = {}): void {
  const { body = "", href, act, action = "Open", stays = false } = more;
  for (const same of notices.filter((one) => one.title === title && one.body === body)) dismiss(same.id);
  const id = ++last;
  notices.push({ id, title, body, href, act, action, stays });
  while (notices.length > MOST) dismiss(notices[0]!.id);
  release(id);
}

/** Takes a notice away. */
export function dismiss(id: number): void {
  hold(id);
  const at = notices.findIndex((one) => one.id === id);
  if (at >= 0) notices.splice(at, 1);
}

/** Somebody looks at it: it stays. */
export function hold(id: number): void {
  clearTimeout(timers.get(id));
  timers.delete(id);
}

/** Nobody looks at it any more. */
export function release(id: number): void {
  hold(id);
  if (document.visibilityState !== "visible" || notices.some((one) => one.id === id && one.stays)) return;
  timers.set(
    id,
    setTimeout(() => dismiss(id), SHOWN_FOR),
  );
}

document.addEventListener("visibilitychange", () => {
  const visible = document.visibilityState === "visible";
  for (const { id } of notices) (visible ? release : hold)(id);
});
