/** The time until an approval expires, in words. */

/** `seconds` are left; `over` if none are. */
export function deadlineText(seconds: number, over: boolean): string {
  if (seconds <= 0) return over ? "The time to answer is over" : "";
  return `Denied in ${clockText(seconds)} unless answered`;
}

/** `0:09`, `4:05`, `2:00:00`; days and hours from two days on. */
function clockText(seconds: number): string {
  const [days, hours] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600)];
  if (days >= 2) return `${days} days ${hours % 24} h`;
  const two = (value: number) => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  const rest = two(seconds % 60);
  return hours > 0 ? `${hours}:${two(minutes % 60)}:${rest}` : `${minutes}:${rest}`;
}
