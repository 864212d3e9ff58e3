import { printable } from "../kernel/ids";
import { nearest } from "./nearest";
import type { ConfigValue } from "./schema";
import type { IntsSetting, ListsSetting, Setting, StringsSetting } from "./setting";

/** What is wrong with a value, to be read after its key: "must be …". */
export interface WrongValue {
  readonly wrong: string;
  readonly nearest?: string;
  /** How it is written instead, where that can be shown. */
  readonly forms?: string;
}

export function isWrong(value: unknown): value is WrongValue {
  return typeof value === "object" && value !== null && Object.hasOwn(value, "wrong");
}

const MAX_ENTRIES = 1_000;
/** As resources are named, paths and refs among them; not `__proto__`, which is no name of its own. */
const LIST_NAME = /^[A-Za-z0-9.][A-Za-z0-9._/:@+-]{0,199}$/;

/** A value as a TOML parser gives it; whole numbers come as bigints, so that 600.0 is not one. */
export function valueFromToml(setting: Setting, raw: unknown): ConfigValue | WrongValue {
  switch (setting.type) {
    case "int":
      return typeof raw === "bigint" ? inRange(raw, setting) : expected(setting, raw);
    case "bool":
      return typeof raw === "boolean" ? allowedBool(setting, raw) : expected(setting, raw);
    case "enum":
      return typeof raw === "string" ? oneOf(setting.values, raw) : expected(setting, raw);
    case "string":
      return typeof raw === "string" && setting.pattern.test(raw) ? raw : expected(setting, raw);
    case "strings":
      return Array.isArray(raw) ? entries(setting, raw) : expected(setting, raw);
    case "ints":
      return isTable(raw) ? table(setting, Object.entries(raw)) : expected(setting, raw);
    case "lists":
      return isTable(raw) ? lists(setting, raw) : expected(setting, raw);
  }
}

/**
 * A value from an environment variable or a flag. Lists are separated by commas, tables are
 * `name=number`, tables of lists `name=one:two`; a list or a text may also be written as in a file.
 */
export function valueFromText(setting: Setting, text: string): ConfigValue | WrongValue {
  const trimmed = text.trim();
  switch (setting.type) {
    case "int":
      return /^\d{1,15}$/.test(trimmed) ? inRange(BigInt(trimmed), setting) : expected(setting, text);
    case "bool": {
      const value = { true: true, "1": true, false: false, "0": false }[trimmed.toLowerCase()];
      return value === undefined ? expected(setting, text) : allowedBool(setting, value);
    }
    case "strings":
      return /^\[.*\]$/s.test(trimmed)
        ? bracketed(setting, trimmed)
        : valueFromToml(setting, splitList(trimmed));
    case "ints": {
      const pairs = splitList(trimmed.replace(/^\{(.*)\}$/s, "$1").trim()).map((entry): [string, unknown] => {
        const [name = "", number = ""] = entry.split("=", 2).map((part) => part.trim());
        return [name, /^\d{1,15}$/.test(number) ? BigInt(number) : number];
      });
      return table(setting, pairs);
    }
    case "lists": {
      const pairs = splitList(trimmed).map((entry): [string, unknown] => {
        const at = entry.indexOf("=");
        return [entry.slice(0, Math.max(at, 0)).trim(), entry.slice(at + 1).split(":")];
      });
      if (/=\s*\[/.test(trimmed))
        return { wrong: `is written as name=one:two here, not "${printable(text, 60)}"` };
      return lists(setting, Object.fromEntries(pairs));
    }
    default:
      return valueFromToml(setting, unquoted(trimmed));
  }
}

/** A list as a file has it. Without quotes it is an entry that happens to begin like one, such as `[ab].txt`. */
function bracketed(setting: StringsSetting, text: string): ConfigValue | WrongValue {
  const list = parsedJson(text);
  if (Array.isArray(list)) return valueFromToml(setting, list);
  if (!/["']/.test(text)) return valueFromToml(setting, splitList(text));
  return { wrong: `is a list, written as one,two or ["one", "two"], not ${show(text)}` };
}

/** Text as a file has it, in quotes. */
function unquoted(text: string): string {
  const value = /^".*"$/s.test(text) ? parsedJson(text) : null;
  return typeof value === "string" ? value : text;
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What a value of the setting looks like, for messages and the reference page. */
export function describeValue(setting: Setting): string {
  switch (setting.type) {
    case "int":
      return `a whole number from ${setting.min} to ${setting.max}`;
    case "bool":
      return setting.only === undefined ? "true or false" : "true";
    case "enum":
      return setting.values.length === 1 ? `"${setting.values[0]}"` : `one of ${setting.values.join(", ")}`;
    case "string":
      return "a name as text";
    case "strings":
      return `a list, each entry ${setting.entry}`;
    case "ints":
      return `a table of whole numbers from ${setting.min} to ${setting.max}, for ${setting.names.join(", ")}`;
    case "lists":
      return `a table of lists, each entry ${setting.entry}`;
  }
}

/** As it is written in a file. Only what the schema can hold; JSON's strings are TOML's basic strings. */
export function tomlOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(tomlOf).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const pairs = Object.entries(value).map(([name, entry]) => `${tomlKey(name)} = ${tomlOf(entry)}`);
  return pairs.length === 0 ? "{}" : `{ ${pairs.join(", ")} }`;
}

function tomlKey(name: string): string {
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : JSON.stringify(name);
}

/** Whether two values are the same; the order of a table's entries says nothing, that of a list's does. */
export function sameValue(a: ConfigValue, b: ConfigValue): boolean {
  return canonicalValue(a) === canonicalValue(b);
}

/** The same text for the same value. */
export function canonicalValue(value: ConfigValue): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return JSON.stringify(value);
  return JSON.stringify(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function inRange(raw: bigint, setting: { min: number; max: number }): number | WrongValue {
  if (raw >= BigInt(setting.min) && raw <= BigInt(setting.max)) return Number(raw);
  return { wrong: `must be from ${setting.min} to ${setting.max}, not ${printable(String(raw), 30)}` };
}

function allowedBool(setting: { only?: true }, raw: boolean): boolean | WrongValue {
  return setting.only === true && !raw ? { wrong: "cannot be switched off: it accepts only true" } : raw;
}

function oneOf(values: readonly string[], raw: string): string | WrongValue {
  if (values.includes(raw)) return raw;
  const near = nearest(raw, values);
  return {
    wrong: `must be ${values.length === 1 ? `"${values[0]}"` : `one of ${values.join(", ")}`}, not "${printable(raw, 60)}"`,
    ...(near === null ? {} : { nearest: near }),
  };
}

function entries(
  setting: Pick<StringsSetting, "pattern" | "entry" | "forms" | "check" | "most">,
  raw: readonly unknown[],
): string[] | WrongValue {
  const { most = MAX_ENTRIES, forms } = setting;
  const shown = forms === undefined ? {} : { forms };
  if (raw.length > most) return { wrong: `has more than ${most} entries` };
  for (const entry of raw) {
    if (typeof entry !== "string" || !setting.pattern.test(entry))
      return { wrong: `has the entry ${show(entry)}, which is not ${setting.entry}`, ...shown };
    const why = setting.check?.(entry) ?? null;
    if (why !== null) return { wrong: `has the entry ${show(entry)}, which ${why}`, ...shown };
  }
  return [...new Set(raw as string[])];
}

/** What can be understood of a list that is wrong: each entry of one that sources add to forbids by itself. */
export function understood(setting: Setting, raw: unknown): ConfigValue | null {
  if (setting.tighten !== "adding" || setting.type !== "strings" || !Array.isArray(raw)) return null;
  const good = raw
    .slice(0, setting.most ?? MAX_ENTRIES)
    .filter((entry) => !isWrong(entries(setting, [entry])));
  return [...new Set(good as string[])];
}

function table(
  setting: IntsSetting,
  pairs: readonly (readonly [string, unknown])[],
): Readonly<Record<string, number>> | WrongValue {
  const result: Record<string, number> = {};
  for (const [name, raw] of pairs) {
    if (!setting.names.includes(name)) {
      const near = nearest(name, setting.names);
      const known = `is not one of ${setting.names.join(", ")}`;
      const wrong = `has the entry "${printable(name, 60)}", which ${known}`;
      return { wrong, ...(near === null ? {} : { nearest: near }) };
    }
    const value = typeof raw === "bigint" ? inRange(raw, setting) : null;
    if (value === null || isWrong(value)) {
      const range = `a whole number from ${setting.min} to ${setting.max}`;
      return { wrong: `has ${name} = ${show(raw)}, which is not ${range}` };
    }
    result[name] = value;
  }
  return result;
}

function lists(
  setting: ListsSetting,
  raw: Readonly<Record<string, unknown>>,
): Readonly<Record<string, readonly string[]>> | WrongValue {
  const result: Record<string, readonly string[]> = {};
  for (const [name, list] of Object.entries(raw)) {
    if (!LIST_NAME.test(name))
      return { wrong: `has the entry "${printable(name, 60)}", which is not a short name` };
    const checked = Array.isArray(list) ? entries(setting, list) : null;
    if (checked === null) return { wrong: `has ${name} = ${show(list)}, which is not a list` };
    if (isWrong(checked)) return { wrong: `${name} ${checked.wrong}` };
    result[name] = checked;
  }
  return result;
}

function expected(setting: Setting, raw: unknown): WrongValue {
  return { wrong: `must be ${describeValue(setting)}, not ${show(raw)}` };
}

function show(raw: unknown): string {
  if (typeof raw === "string") return `"${printable(raw, 60)}"`;
  if (typeof raw === "bigint" || typeof raw === "number" || typeof raw === "boolean") return String(raw);
  if (raw instanceof Date) return "a date";
  return Array.isArray(raw) ? "a list" : "a table";
}

function splitList(text: string): string[] {
  return text === "" ? [] : text.split(",").map((entry) => entry.trim());
}

export function isTable(raw: unknown): raw is Record<string, unknown> {
  return typeof raw === "object" && raw !== null && !Array.isArray(raw) && !(raw instanceof Date);
}

/** Whole numbers as the TOML parser gives them. */
export function asToml(raw: unknown): unknown {
  if (typeof raw === "number" && Number.isSafeInteger(raw)) return BigInt(raw);
  if (!isTable(raw)) return raw;
  return Object.fromEntries(Object.entries(raw).map(([name, value]) => [name, asToml(value)]));
}
