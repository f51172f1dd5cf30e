/** Reading JSON from outside into checked shapes: what is missing or wrong is an error, what is unknown is left out. */

/** Reads one value, or throws {@link ShapeError}. */
export type Shape<T> = (value: unknown) => T;

/** The value is not what it should be. */
export class ShapeError extends Error {
  override readonly name = "ShapeError";
}

/** Any text. */
export const text: Shape<string> = (value) => (typeof value === "string" ? value : wrong("text", value));
/** True or false. */
export const flag: Shape<boolean> = (value) => (typeof value === "boolean" ? value : wrong("true or false", value));
/** Anything. */
export const anything: Shape<unknown> = (value) => value;

/** An integer between the two, at most 2^53 - 1. */
export function integer(low: number, high = Number.MAX_SAFE_INTEGER): Shape<number> {
  return (value) =>
    Number.isSafeInteger(value) && (value as number) >= low && (value as number) <= high
      ? (value as number)
      : wrong(`an integer from ${low} to ${high}`, value);
}

/** An offset or a count. */
export const count = integer(0);

/** Text that passes a check. */
export function checked(what: string, check: (text: string) => boolean): Shape<string> {
  return (value) => (typeof value === "string" && check(value) ? value : wrong(what, value));
}

/** One of these words. */
export function oneOf<const T extends readonly string[]>(...words: T): Shape<T[number]> {
  return (value) =>
    words.includes(value as string) ? (value as T[number]) : wrong(`one of ${words.join(", ")}`, value);
}

/** One of these words, or "unknown" for one of a later time. */
export function word<const T extends readonly string[]>(...words: T): Shape<T[number] | "unknown"> {
  return (value) => (words.includes(text(value)) ? (value as T[number]) : "unknown");
}

/** A value, or null; missing is null. */
export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return (value) => (value === null || value === undefined ? null : shape(value));
}

/** A field that may be missing or null, and is then left out. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value) => (value === null || value === undefined ? undefined : shape(value));
}

/** A field that may be missing, with what it then means. */
export function defaulted<T>(shape: Shape<T>, missing: T): Shape<T> {
  return (value) => (value === undefined ? missing : shape(value));
}

/** A value, or undefined for anything else. */
export function attempt<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value) => {
    try {
      return shape(value);
    } catch (error) {
      if (!(error instanceof ShapeError)) throw error;
      return undefined;
    }
  };
}

/** A list. */
export function list<T>(shape: Shape<T>): Shape<T[]> {
  return (value) => (Array.isArray(value) ? value.map((item) => shape(item)) : wrong("a list", value));
}

/** How to read each field of an object; one that may be missing reads as undefined. */
export type Fields<T> = { [K in keyof T]-?: object extends Pick<T, K> ? Shape<T[K] | undefined> : Shape<T[K]> };

/** An object with these fields; others are left out, and so are those that are undefined. */
export function object<T extends object>(fields: Fields<T>): Shape<T> {
  const entries = Object.entries<Shape<unknown>>(fields);
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return wrong("an object", value);
    const out: Record<string, unknown> = {};
    for (const [name, shape] of entries) {
      const field = at(name, shape, (value as Record<string, unknown>)[name]);
      if (field !== undefined) out[name] = field;
    }
    return out as T;
  };
}

/** An object with a `type`, by which the rest is read; an unknown type is undefined. */
export function tagged<T extends { type: string }>(types: {
  [K in T["type"]]: Fields<Omit<Extract<T, { type: K }>, "type">>;
}): Shape<T | undefined> {
  const known = new Map<string, Shape<object>>();
  for (const [type, fields] of Object.entries(types)) known.set(type, object(fields as Fields<object>));
  const tag = object<{ type: string }>({ type: text });
  return (value) => {
    const { type } = tag(value);
    const shape = known.get(type);
    return shape && ({ type, ...at(type, shape, value) } as T);
  };
}

function at<T>(name: string, shape: Shape<T>, value: unknown): T {
  try {
    return shape(value);
  } catch (error) {
    if (error instanceof ShapeError) error.message = `${name}: ${error.message}`;
    throw error;
  }
}

function wrong(what: string, value: unknown): never {
  const shown = value === undefined ? "nothing" : (JSON.stringify(value) ?? typeof value).slice(0, 60);
  throw new ShapeError(`${what} is expected, not ${shown}`);
}
