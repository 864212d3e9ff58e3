/**
 * Requests and answers of the coordinator's contract are plain values. On the wire their names are those of all our JSON
 * (`lease_id`), in the program those of the program (`leaseId`). Whatever stands below these names is somebody's data, and
 * stays as it is.
 */
const DATA: ReadonlySet<string> = new Set(["data", "payload"]);

export function toWire(value: unknown): unknown {
  return renamed(value, (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}

export function fromWire(value: unknown): unknown {
  return renamed(value, (name) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()));
}

function renamed(value: unknown, rename: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((each) => renamed(each, rename));
  if (typeof value !== "object" || value === null) return value;
  // Own properties only, whatever they are called: `__proto__` is a name like any other here.
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [
      rename(name),
      DATA.has(name) ? each : renamed(each, rename),
    ]),
  );
}
