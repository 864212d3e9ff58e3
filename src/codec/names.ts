/**
 * Names in files, in the log and on the wire are in snake_case (`lease_id`), in the program in camelCase (`leaseId`). What stands
 * below an opaque name is somebody's data, and stays as it is.
 */
export type Opaque = ReadonlySet<string>;

const NOTHING: Opaque = new Set();

/** There are some hundred names; what strangers make up must not fill the memory. */
const MOST_NAMES = 1_000;

export function toSnakeCase(value: unknown, opaque: Opaque = NOTHING): unknown {
  return renamed(value, snakeCase, opaque);
}

export function toCamelCase(value: unknown, opaque: Opaque = NOTHING): unknown {
  return renamed(value, camelCase, opaque);
}

export const snakeCase = remembering((name) =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
);
export const camelCase = remembering((name) =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
);

type Rename = (name: string) => string;

/** The same few names come with every request: renaming them anew was a third of the daemon's work. */
function remembering(rename: Rename): Rename {
  const known = new Map<string, string>();
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const now = rename(name);
    if (known.size < MOST_NAMES) known.set(name, now);
    return now;
  };
}

export function renamed(value: unknown, rename: Rename, opaque: Opaque = NOTHING): unknown {
  if (Array.isArray(value)) return value.map((each) => renamed(each, rename, opaque));
  if (typeof value !== "object" || value === null) return value;
  // Not assigned one by one: "__proto__" is a name like any other here, and would be lost.
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      rename(name),
      opaque.has(name) ? each : renamed(each, rename, opaque),
    ]),
  );
}
