/** Short notices in a corner of the page, which disappear after a few seconds. */

export interface Notice {
  readonly id: number;
  readonly title: string;
  readonly body: string;
  /** The target of the notice's link: a page of the app, or a link that a program printed. */
  readonly href: string | undefined;
  /** What the notice's button does. Ignored if there is an `href`. */
  readonly onAction: (() => void) | undefined;
  /** The label of the link or button. */
  readonly action: string;
  /** Whether the notice stays until the user dismisses it. */
  readonly persistent: boolean;
}

export type NoticeOptions = Partial<Omit<Notice, "id" | "title">>;

/** How many notices are shown at a time; another one replaces the oldest. */
const MAX_NOTICES = 3;
/**
 * Milliseconds until a notice disappears. The timer starts over after a pointer or the focus leaves it, or a
 * hidden page is shown.
 */
const SHOW_MS = 8000;

/** The notices shown now, oldest first. */
export const notices: Notice[] = $state([]);
const timers = new Map<number, ReturnType<typeof setTimeout>>();
let lastId = 0;

/** Shows a notice. It replaces an earlier one with the same title and body. */
export function showNotice(title: string, options: NoticeOptions = {}): void {
  const { body = "", href, onAction, action = "Open", persistent = false } = options;
  for (const same of notices.filter((other) => other.title === title && other.body === body)) dismiss(same.id);
  const id = ++lastId;
  notices.push({ id, title, body, href, onAction, action, persistent });
  while (notices.length > MAX_NOTICES) dismiss(notices[0]!.id);
  startTimer(id);
}

export function dismiss(id: number): void {
  stopTimer(id);
  const index = notices.findIndex((notice) => notice.id === id);
  if (index >= 0) notices.splice(index, 1);
}

/** Keeps a notice open while the user points at it or it has the focus. */
export function stopTimer(id: number): void {
  clearTimeout(timers.get(id));
  timers.delete(id);
}

/** Lets a notice disappear after `SHOW_MS`, unless it is persistent or the page is hidden. */
export function startTimer(id: number): void {
  stopTimer(id);
  if (document.visibilityState !== "visible" || notices.some((notice) => notice.id === id && notice.persistent)) return;
  timers.set(
    id,
    setTimeout(() => dismiss(id), SHOW_MS),
  );
}

document.addEventListener("visibilitychange", () => {
  const visible = document.visibilityState === "visible";
  for (const { id } of notices) (visible ? startTimer : stopTimer)(id);
});
