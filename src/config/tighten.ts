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
      return false;
    case "trusted":
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

/** For a table: any entry that is larger. A missing entry is no limit at all. */
function exceeds(one: ConfigValue, other: ConfigValue): boolean {
  if (typeof one === "number" && typeof other === "number") return one > other;
  const [a, b] = [one, other] as Readonly<Record<string, number>>[];
  return Object.keys({ ...a, ...b }).some(
    (name) => (a![name] ?? Number.POSITIVE_INFINITY) > (b![name] ?? Number.POSITIVE_INFINITY),
  );
}
