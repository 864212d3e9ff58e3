import type { HarnessName } from "../../identity/harness";
import { type Layer, type Table, tableIn } from "./settings-layers";
import { type Grounds, type Site, shownPath } from "./sites";

/** A setting that keeps a harness from running our hooks. */
interface Switch {
  readonly setting: string;
  /** Null where a file says nothing about it. */
  isOff(table: Table): boolean | null;
  /** Only there it counts. */
  readonly of?: Layer["of"];
  /** What one file says no other takes back. */
  readonly isFinal?: true;
}

const ALL: Switch = {
  setting: '"disableAllHooks": true',
  isOff: ({ disableAllHooks }) => (typeof disableAllHooks === "boolean" ? disableAllHooks : null),
};

/** As the programs heeded them on Linux, autumn 2026. */
const SWITCHES: Readonly<Partial<Record<HarnessName, readonly Switch[]>>> = {
  claude: [
    ALL,
    {
      setting: '"allowManagedHooksOnly": true',
      isOff: ({ allowManagedHooksOnly: said }) => (typeof said === "boolean" ? said : null),
      of: "machine",
    },
  ],
  copilot: [ALL],
  qwen: [ALL],
  gemini: [
    {
      setting: '"hooksConfig": {"enabled": false}',
      isOff: (table) => {
        const said = tableIn(table, "hooksConfig")["enabled"];
        return typeof said === "boolean" ? !said : null;
      },
    },
    {
      setting: '"cotenant" in "hooksConfig": {"disabled": […]}',
      isOff: (table) => {
        const names = tableIn(table, "hooksConfig")["disabled"];
        return Array.isArray(names) && names.includes("cotenant") ? true : null;
      },
      isFinal: true,
    },
  ],
};

/** Why a harness runs no hooks, to be read after its name: one sentence for each setting. Layers are those that count. */
export function switchedOff(harness: HarnessName, layers: readonly Layer[], grounds: Grounds): string[] {
  return (SWITCHES[harness] ?? []).flatMap(({ setting, isOff, of, isFinal }) => {
    const said = layers
      .filter((layer) => of === undefined || layer.of === of)
      .flatMap((layer) => {
        const word = isOff(layer.table);
        return word === null ? [] : [{ layer, word }];
      });
    const last = isFinal === true ? said.find(({ word }) => word) : said.at(-1);
    return last?.word === true ? [becauseOf(last.layer, setting, grounds)] : [];
  });
}

/** Some switches are about the file that they are in, and nothing else. */
export function isFileOff({ harness }: Pick<Site, "harness">, table: Table): boolean {
  return harness === "copilot" && ALL.isOff(table) === true;
}

export function becauseOf(
  { path, of }: Pick<Layer, "path" | "of">,
  setting: string,
  grounds: Grounds,
): string {
  const step = of === "machine" ? "ask whoever administers this machine" : "take that out";
  return `runs no hooks, because ${shownPath(path, grounds)} has ${setting}: ${step}`;
}
