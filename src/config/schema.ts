import { DAEMON } from "./sections/daemon";
import { GUARD } from "./sections/guard";
import { ISSUES } from "./sections/issues";
import { LAND } from "./sections/land";
import { LEASES } from "./sections/leases";
import { SYNC } from "./sections/sync";
import { WORK } from "./sections/work";
import { type Setting, type Settings, variableName } from "./setting";

/** @public Every key there is. Defaults, validation, `config show`, the template and the reference page come from here. */
export const SCHEMA = {
  ...WORK,
  ...LAND,
  ...ISSUES,
  ...LEASES,
  ...DAEMON,
  ...GUARD,
  ...SYNC,
} as const satisfies Settings;

export type ConfigKey = keyof typeof SCHEMA;

type ValueOf<S> = S extends { readonly type: "int"; readonly default: infer D }
  ? D extends null
    ? number | null
    : number
  : S extends { readonly type: "bool" }
    ? boolean
    : S extends { readonly type: "enum"; readonly values: readonly (infer V)[] }
      ? V
      : S extends { readonly type: "string" }
        ? string | null
        : S extends { readonly type: "strings" }
          ? readonly string[]
          : S extends { readonly type: "lists" }
            ? Readonly<Record<string, readonly string[]>>
            : Readonly<Record<string, number>>;

export type ConfigValues = { readonly [K in ConfigKey]: ValueOf<(typeof SCHEMA)[K]> };
export type ConfigValue =
  | string
  | number
  | boolean
  | null
  | readonly string[]
  | Readonly<Record<string, number>>
  | Readonly<Record<string, readonly string[]>>;

export const CONFIG_KEYS = Object.keys(SCHEMA) as readonly ConfigKey[];
export const CONFIG_SECTIONS: readonly string[] = [...new Set(CONFIG_KEYS.map(sectionOf))];

export function isConfigKey(key: string): key is ConfigKey {
  return Object.hasOwn(SCHEMA, key);
}

/** The setting with its type forgotten, for code that treats all alike. */
export function settingOf(key: ConfigKey): Setting {
  return SCHEMA[key];
}

export function sectionOf(key: string): string {
  return key.slice(0, key.indexOf("."));
}

export function nameInSection(key: string): string {
  return key.slice(key.indexOf(".") + 1);
}

export function variableOf(key: ConfigKey): string {
  return variableName(key);
}
