import * as v from "valibot";
import type { Codec, Reader } from "./codec";
import type { JsonObject } from "./json";
import { camelCase, type Opaque, renamed, snakeCase } from "./names";

interface Spelling {
  /** Fields whose name in the file is not just the same in snake_case. */
  readonly names?: Readonly<Record<string, string>>;
  /** Fields below which nothing is renamed. */
  readonly opaque?: Opaque;
  /** A field that is null is not written at all. */
  readonly leavesNullsOut?: boolean;
}

export function readerOf<S extends v.GenericSchema>(schema: S): Reader<v.InferOutput<S>> {
  return {
    decode(wire) {
      const read = v.safeParse(schema, wire);
      return read.success ? read.output : null;
    },
  };
}

/** A record of ours as it stands in a file or a fact, its fields in the schema's order. */
export function codecOf<const E extends v.ObjectEntries>(
  entries: E,
  { names = {}, opaque, leavesNullsOut = false }: Spelling = {},
): Codec<v.InferOutput<v.ObjectSchema<E, undefined>>> {
  const reader = readerOf(v.object(entries));
  const here = new Map(Object.entries(names).map(([name, there]) => [there, name]));
  return {
    decode: (wire) => reader.decode(renamed(wire, (name) => here.get(name) ?? camelCase(name), opaque)),
    encode(value) {
      const fields = Object.keys(entries).map((name) => [name, value[name as keyof typeof value] as unknown]);
      const written = fields.filter(
        ([, field]) => field !== undefined && !(leavesNullsOut && field === null),
      );
      return renamed(
        Object.fromEntries(written),
        (name) => names[name] ?? snakeCase(name),
        opaque,
      ) as JsonObject;
    },
  };
}
