import type { HarnessName } from "../../identity/harness";
import { below, joinPath } from "../../identity/path-text";
import type { Files } from "../../platform/platform";
import type { Installed, Program } from "../installer/files";
import { linesInToml, programInToml, tomlBlock, tomlLines, viaInToml } from "./codex-toml";
import { programIn, type Via, type ViaName, viaName } from "./command-line";
import { viaOf } from "./entries";
import { isCurrent, readSettings, wantedIn } from "./json-settings";
import type { Found } from "./plan";
import { isAsWritten, isPlugin, pluginText, programOfPlugin, viaOfPlugin } from "./plugin";
import { type Grounds, homeOf } from "./sites";

/**
 * How one file stands. `outdated`: it calls us, but not as this version would, or twice. `changed`: it was all ours, until
 * somebody wrote into it. `unreadable`: neither we nor the harness can make anything of it.
 */
export interface SiteState {
  readonly state: "installed" | "outdated" | "changed" | "missing" | "unreadable";
  readonly isByHand: boolean;
  /** What our lines start; null where they look on the PATH, or are not there. */
  readonly program: Program;
  /** How they get to the guard. */
  readonly via: Via;
  readonly why: string | null;
}

const NOTHING: SiteState = { state: "missing", isByHand: false, program: null, via: null, why: null };

export function stateOf(
  { site, file }: Pick<Found, "site" | "file">,
  digestOf: (text: string) => string,
): SiteState {
  const { text, why } = file;
  if (text === null) return why === null ? NOTHING : { ...NOTHING, state: "unreadable", why };
  if (site.format === "plugin") {
    if (!isPlugin(text)) return NOTHING;
    const program = programOfPlugin(text);
    const via = viaOfPlugin(text);
    const isSame = pluginText(site.harness, program, digestOf, via) === text;
    const state = isSame ? "installed" : isAsWritten(text, digestOf) ? "outdated" : "changed";
    return { ...NOTHING, state, program, via };
  }
  if (site.format === "toml") return stateOfToml(text);
  const read = readSettings(text);
  if ("why" in read) return { ...NOTHING, state: "unreadable", why: read.why };
  const { entries, json } = read;
  if (entries.length === 0) return NOTHING;
  const program = entries.map(({ line }) => programIn(line)).find((one) => one !== null) ?? null;
  const via = viaOf(entries);
  const isByHand = entries.every((entry) => entry.isByHand);
  const state = isCurrent(entries, wantedIn(site.harness, json, program, via)) ? "installed" : "outdated";
  return { state: isByHand ? "installed" : state, isByHand, program, via, why: null };
}

function stateOfToml(text: string): SiteState {
  const lines = linesInToml(text);
  if (lines.length === 0) return NOTHING;
  const block = tomlBlock(text);
  if (block === null) return { ...NOTHING, state: "installed", isByHand: true };
  const program = programInToml(text);
  const via = viaInToml(text);
  const isSame = block !== "damaged" && block.lines.join("\n") === tomlLines(program, via).join("\n");
  return { ...NOTHING, state: isSame ? "installed" : "outdated", program, via };
}

/** What writes the same lines as are in this file: the program that they name, or this one for the PATH's sake. */
export function writerOf(
  site: Pick<SiteState, "program" | "isByHand" | "via"> | null,
  own: Installed,
): { readonly installer: Installed; readonly isShared: boolean; readonly via: ViaName } {
  const isShared = site !== null && site.program === null && !site.isByHand;
  return { installer: site?.program ?? own, isShared, via: viaName(site?.via ?? null) };
}

/** Whether a harness has its directory in the user's home, and there is more in it than what was made for us. */
export async function isPresent(
  files: Files,
  harness: HarnessName,
  grounds: Grounds,
  found: readonly Found[],
): Promise<boolean> {
  const home = homeOf(harness, grounds);
  const ours = found.filter(({ record }) => record?.isMade === true).map(({ site }) => site.path);
  if (home === null || (await files.stat(home)) === null) return false;
  return ours.length === 0 || hasMore(files, home, ours);
}

async function hasMore(files: Files, directory: string, ours: readonly string[]): Promise<boolean> {
  for (const name of (await files.readDirectory(directory)) ?? []) {
    const path = joinPath(directory, name);
    if (ours.includes(path)) continue;
    const isOnTheWay = ours.some((file) => below(file, path) !== null);
    if (!isOnTheWay || (await hasMore(files, path, ours))) return true;
  }
  return false;
}
