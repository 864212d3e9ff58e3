/**
 * Requests and answers of the coordinator's contract are plain values. On the wire their names are those of all our JSON
 * (`lease_id`), in the program those of the program (`leaseId`). Whatever stands below these names is somebody's data, and
 * stays as it is.
 */
const DATA: ReadonlySet<string> = new Set(["data", "payload"]);

/** There are some hundred names; what strangers make up must not fill the memory. */
const MOST_NAMES = 1_000;

export function toWire(value: unknown): unknown {
  return renamed(value, snakeCase);
}

export function fromWire(value: unknown): unknown {
  return renamed(value, camelCase);
}

const snakeCase = remembering((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
const camelCase = remembering((name) =>
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

function renamed(value: unknown, rename: Rename): unknown {
  if (Array.isArray(value)) return value.map((each) => renamed(each, rename));
  if (typeof value !== "object" || value === null) return value;
  const made: Record<string, unknown> = {};
  for (const [name, each] of Object.entries(value)) {
    const renamedTo = rename(name);
    const inside = DATA.has(name) ? each : renamed(each, rename);
    // A name like any other here; assigned plainly, it would be lost.
    if (renamedTo === "__proto__")
      Object.defineProperty(made, renamedTo, {
        value: inside,
        enumerable: true,
        writable: true,
        configurable: true,
      });
    else made[renamedTo] = inside;
  }
  return made;
}
