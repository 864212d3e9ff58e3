import { type ConfigKey, type ConfigValue, settingOf } from "./schema";
import { sameValue } from "./values";

/**
 * Whether changing a key from `base` to `wanted` could allow something that was not allowed. A committed
 * file may make such a change only in a clone that trusts it.
 */
export function loosens(key: ConfigKey, base: ConfigValue, wanted: ConfigValue): boolean {
  const setting = settingOf(key);
  switch (setting.tighten) {
    case "free":
    case "adding":
      return false;
    case "trusted":
    case "naming":
    case "command":
      return !sameValue(base, wanted);
    case "on":
      return base === true && wanted === false;
    case "off":
      return base === false && wanted === true;
    case "later":
      return setting.type !== "enum" || place(setting.values, wanted) < place(setting.values, base);
    case "subset":
      return (wanted as readonly string[]).some((entry) => !(base as readonly string[]).includes(entry));
    case "superset":
      return (base as readonly string[]).some((entry) => !(wanted as readonly string[]).includes(entry));
    case "lower":
      return exceeds(wanted, base);
    case "higher":
      return exceeds(base, wanted);
  }
}

function place(values: readonly string[], value: ConfigValue): number {
  return values.indexOf(value as string);
}

/** For a table: any entry that is larger. What is not set is no limit at all. */
function exceeds(one: ConfigValue, other: ConfigValue): boolean {
  const isTable = [one, other].some((value) => typeof value === "object" && value !== null);
  if (!isTable) return limit(one) > limit(other);
  const [a, b] = [one, other] as Readonly<Record<string, number>>[];
  return Object.keys({ ...a, ...b }).some((name) => limit(a![name]) > limit(b![name]));
}

function limit(value: ConfigValue | undefined): number {
  return (value as number | null | undefined) ?? Number.POSITIVE_INFINITY;
}
