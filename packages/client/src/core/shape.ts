/** Parsing JSON into checked types: a missing or invalid field is an error, an unknown field is dropped. */

/** Parses one value, or throws {@link ShapeError}. */
export type Shape<T> = (value: unknown) => T;

/** A value does not have the expected shape. */
export class ShapeError extends Error {
  override readonly name = "ShapeError";
}

export const text: Shape<string> = (value) => (typeof value === "string" ? value : fail("a string", value));
export const flag: Shape<boolean> = (value) => (typeof value === "boolean" ? value : fail("true or false", value));
/** A finite number that is not negative. */
export const amount: Shape<number> = (value) =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : fail("an amount", value);
export const anything: Shape<unknown> = (value) => value;

/** An integer from `low` to `high`, both included; `high` is at most 2^53 - 1. */
export function integer(low: number, high = Number.MAX_SAFE_INTEGER): Shape<number> {
  return (value) =>
    Number.isSafeInteger(value) && (value as number) >= low && (value as number) <= high
      ? (value as number)
      : fail(`an integer from ${low} to ${high}`, value);
}

/** An offset or a count. */
export const count = integer(0);

/** A string that passes a check. */
export function checked(expected: string, check: (text: string) => boolean): Shape<string> {
  return (value) => (typeof value === "string" && check(value) ? value : fail(expected, value));
}

/** One of these strings. */
export function oneOf<const T extends readonly string[]>(...values: T): Shape<T[number]> {
  return (value) =>
    values.includes(value as string) ? (value as T[number]) : fail(`one of ${values.join(", ")}`, value);
}

/** One of these strings, or "unknown" for any other: a newer server may send values that this version does not know. */
export function oneOfOrUnknown<const T extends readonly string[]>(...values: T): Shape<T[number] | "unknown"> {
  return (value) => (values.includes(text(value)) ? (value as T[number]) : "unknown");
}

/** A value or null. A missing field reads as null. */
export function nullable<T>(shape: Shape<T>): Shape<T | null> {
  return (value) => (value === null || value === undefined ? null : shape(value));
}

/** A field that may be missing or null, and is then left out of the object. */
export function optional<T>(shape: Shape<T>): Shape<T | undefined> {
  return (value) => (value === null || value === undefined ? undefined : shape(value));
}

/** A field with a default for when it is missing. */
export function defaulted<T>(shape: Shape<T>, otherwise: T): Shape<T> {
  return (value) => (value === undefined ? otherwise : shape(value));
}

/** A value, or `undefined` if it does not have the shape. */
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

export function list<T>(shape: Shape<T>): Shape<T[]> {
  return (value) => (Array.isArray(value) ? value.map((item) => shape(item)) : fail("an array", value));
}

/** The shape of each field of an object. An optional field reads as `undefined` if it is missing. */
export type Fields<T> = { [K in keyof T]-?: object extends Pick<T, K> ? Shape<T[K] | undefined> : Shape<T[K]> };

/** An object with these fields. Other fields are dropped, and so are fields that are `undefined`. */
export function object<T extends object>(fields: Fields<T>): Shape<T> {
  const entries = Object.entries<Shape<unknown>>(fields);
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return fail("an object", value);
    const out: Record<string, unknown> = {};
    for (const [name, shape] of entries) {
      const field = at(name, shape, (value as Record<string, unknown>)[name]);
      if (field !== undefined) out[name] = field;
    }
    return out as T;
  };
}

/** An object whose field `type` selects the shape of the rest. An object of an unknown type reads as `undefined`. */
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

/** Parses a nested value; an error names where it is. */
function at<T>(name: string, shape: Shape<T>, value: unknown): T {
  try {
    return shape(value);
  } catch (error) {
    if (error instanceof ShapeError) error.message = `${name}: ${error.message}`;
    throw error;
  }
}

function fail(expected: string, value: unknown): never {
  const found = value === undefined ? "nothing" : (JSON.stringify(value) ?? typeof value).slice(0, 60);
  throw new ShapeError(`expected ${expected}, found ${found}`);
}
