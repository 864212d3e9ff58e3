import * as v from "valibot";
import { isCount, timeMsOf } from "../kernel/bounds";
import { parseUlid } from "../kernel/ids";
import { isRefusal, type Refusal } from "../kernel/refusal";

/** Text that one of the kernel's parsers makes a name of. */
export function parsed<T extends string>(parse: (text: string) => T | Refusal) {
  return v.pipe(
    v.string(),
    v.rawTransform<string, T>(({ dataset, addIssue, NEVER }) => {
      const value = parse(dataset.value);
      if (!isRefusal(value)) return value;
      addIssue({ message: value.message });
      return NEVER;
    }),
  );
}

export const ulid = parsed(parseUlid);

/** Whatever is not as the schema wants it, or is missing, counts as nothing. */
export function orNull<S extends v.GenericSchema>(schema: S) {
  return v.fallback(v.nullable(schema), null);
}

export const textOrNull = orNull(v.string());
export const textOrEmpty = v.fallback(v.string(), "");
/** Anything, as text. */
export const anyText = v.pipe(
  v.optional(v.unknown(), ""),
  v.transform((value) => String(value ?? "")),
);
export const isTrue = v.pipe(
  v.optional(v.unknown(), false),
  v.transform((value) => value === true),
);
/** A process, field by field. */
export const processIdentity = v.object({
  machineId: v.string(),
  bootId: v.string(),
  pidNamespace: v.string(),
  timeNamespace: v.string(),
  user: v.string(),
  pid: v.pipe(v.number(), v.integer()),
  startTime: v.string(),
});
/** A process as it was written down, names and all: it is only ever asked about. */
export const anyObject = <T extends object>() =>
  v.custom<T>((value) => typeof value === "object" && value !== null);

/** Those of the items that are as the schema wants them. */
export function those<S extends v.GenericSchema>(schema: S) {
  return v.pipe(
    v.fallback(v.array(v.unknown()), []),
    v.transform((items) =>
      items.flatMap((item): v.InferOutput<S>[] => {
        const read = v.safeParse(schema, item);
        return read.success ? [read.output] : [];
      }),
    ),
  );
}
/** An RFC 3339 text within bounds, as milliseconds. */
const timeMs = v.pipe(v.unknown(), v.transform(timeMsOf), v.number());

/** The same, as our files have it. */
export const iso = v.pipe(
  timeMs,
  v.transform((ms) => new Date(ms).toISOString()),
);
/** A whole number within the bounds of what another machine may say. */
export const count = v.custom<number>((value) => isCount(value));
