import type { ErrorCode } from "../../errors/registry";
import { HARNESSES } from "../guard/harness";
import { hasTomlHooks, placedInToml, tomlBlock } from "./codex-toml";
import { type Program, type Via, type ViaName, viaName } from "./command-line";
import {
  hasOwnWorktrees,
  isCurrent,
  type Placement,
  placed,
  readSettings,
  taken,
  titleOf,
  wantedIn,
} from "./json-settings";
import type { FoundFile, Standing } from "./look";
import { CHANGED_BY_HAND, isAsWritten, isPlugin, pluginText } from "./plugin";
import { type FileRecord, modeWithout, PRIVATE_MODE } from "./record";
import type { Site } from "./sites";

/** One file of settings, and everything that decides about it. */
export interface Found {
  readonly site: Site;
  readonly file: FoundFile;
  readonly standing: Standing | null;
  readonly record: FileRecord | null;
}

export interface Wishes {
  readonly program: NonNullable<Program>;
  /** For everybody: into files that are committed, without paths of this machine. */
  readonly shared: boolean;
  /** How events get to the guard. */
  readonly via: Via;
  readonly digestOf: (text: string) => string;
}

/** What becomes of one file. */
export interface SitePlan {
  readonly site: Site;
  readonly action: "created" | "added" | "updated" | "unchanged";
  readonly file: FoundFile;
  /** Null where nothing is written. */
  readonly after: string | null;
  readonly mode: number;
  readonly record: FileRecord | null;
  /** Git must be told to pass it over: it is for this machine alone. */
  readonly hides: boolean;
  readonly isShared: boolean;
  readonly remarks: readonly string[];
}

/** Why nothing is written, and what to do instead. */
export interface Objection {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string;
  readonly path: string;
}

export function isObjection(value: SitePlan | Objection): value is Objection {
  return "code" in value;
}

export function planInstall(all: readonly Found[], wishes: Wishes): SitePlan | Objection {
  const found = chosen(all, wishes.shared);
  const { site, file } = found;
  if (file.why !== null) return objection(site, file.why);
  const isShared = wishes.shared || (found.record?.isShared ?? false);
  if (site.level === "project" && !isShared) {
    const against = againstCommitted(found);
    if (against !== null) return against;
  }
  const program = site.level === "project" && isShared ? null : wishes.program;
  if (isShared && wishes.via !== null) return forThisMachine(site);
  const next = written(found, program, wishes);
  // It is to hold what shows that one may ask.
  const isPrivate = wishes.via?.http != null && site.format === "nested";
  if ("why" in next) return objection(site, next.why);
  const action =
    next.after === null ? "unchanged" : file.isThere ? (next.hasOurs ? "updated" : "added") : "created";
  const hides = site.level === "project" && !isShared && (found.standing ?? "plain") === "plain";
  return {
    site,
    action,
    file,
    after: next.after,
    mode: isPrivate ? PRIVATE_MODE : modeWithout(found),
    record: { ...recordFor(found, next, isShared, isPrivate), via: viaName(wishes.via) },
    hides,
    isShared,
    remarks: [...remarksOn(found, isShared), ...remarksOnWay(found, viaName(wishes.via))],
  };
}

/** Whoever leaves --via out may not know that it had another way before. */
function remarksOnWay({ site, record }: Found, now: ViaName): string[] {
  if (record === null || record.via === now) return [];
  const { title } = HARNESSES[site.harness];
  const back =
    record.via === "program"
      ? ""
      : `; to have it back: cotenant agent install ${site.harness} --via ${record.via}`;
  return [`${title} asks ${WAYS[now]} from now on, and not ${WAYS[record.via]} any more${back}`];
}

const WAYS: Readonly<Record<ViaName, string>> = {
  program: "by a program for each event",
  daemon: "the daemon through its hooks",
  http: "the daemon over HTTP",
};

/** Of the files that a harness has at that level, the one for us. Codex wants all hooks in one of two. */
function chosen(all: readonly Found[], shared: boolean): Found {
  const fitting = all.filter(({ site }) => site.isCommitted === null || site.isCommitted === shared);
  const [first, second] = fitting;
  if (second === undefined) return first!;
  const inToml = second.file.text ?? "";
  if (tomlBlock(inToml) !== null) return second;
  return !first!.file.isThere && hasTomlHooks(inToml) ? second : first!;
}

function againstCommitted({ site, file, standing, record }: Found): Objection | null {
  const isOthers = standing === "plain" && file.isThere && record === null;
  if (standing !== "tracked" && !(isOthers && site.isCommitted === null && !site.isOwn)) return null;
  return {
    code: "E_SETTINGS",
    message: `${site.path} belongs to the project: Git has it, or would take it with the next commit`,
    hint: "add --shared to change it for everybody, or --user to install for all your projects and leave this one alone",
    path: site.path,
  };
}

function forThisMachine({ path }: Site): Objection {
  return {
    code: "E_SETTINGS",
    message: `${path} is for everybody, and the daemon is of this machine`,
    hint: "leave out --via, or take ours out with 'cotenant agent uninstall --shared' first",
    path,
  };
}

function objection({ path }: Site, why: string): Objection {
  return {
    code: "E_SETTINGS",
    message: `${path} cannot be changed: ${why}`,
    hint: "mend it or move it away, then run the same command again",
    path,
  };
}

type Next =
  | { readonly why: string }
  | { readonly after: string | null; readonly placement: Placement | null; readonly hasOurs: boolean };

function written(found: Found, program: Program, { via, digestOf }: Pick<Wishes, "via" | "digestOf">): Next {
  const { site, file } = found;
  if (site.format === "plugin") return writtenPlugin(found, program, via, digestOf);
  if (site.format === "toml") return writtenToml(file, program, via);
  const text = file.text;
  const placements = found.record?.placements ?? [];
  if (text !== null) {
    const read = readSettings(text);
    if ("why" in read) return read;
    if (isCurrent(read.entries, wantedIn(site.harness, read.json, program, via)))
      return { after: null, placement: null, hasOurs: true };
  }
  const hasOurs = text !== null && oursIn(text);
  const base = text === null ? { text: "" } : taken(text, placements, digestOf);
  if ("why" in base) return base;
  const next = placed(site.harness, base.text, program, via);
  if ("why" in next) return next;
  return { after: next.text, placement: { digest: digestOf(next.text), splices: next.splices }, hasOurs };
}

function oursIn(text: string): boolean {
  const read = readSettings(text);
  return !("why" in read) && read.entries.some(({ isByHand }) => !isByHand);
}

function writtenPlugin(
  { site, file: { text } }: Found,
  program: Program,
  via: Via,
  digestOf: Wishes["digestOf"],
): Next {
  if (text !== null && !isPlugin(text)) return { why: "it is a plugin of somebody else's" };
  if (text !== null && !isAsWritten(text, digestOf)) return { why: CHANGED_BY_HAND };
  const after = pluginText(site.harness, program, digestOf, via);
  return { after: after === text ? null : after, placement: null, hasOurs: text !== null };
}

function writtenToml({ text }: FoundFile, program: Program, via: Via): Next {
  const block = text === null ? null : tomlBlock(text);
  if (block === "damaged")
    return {
      why: "our lines in it are damaged; remove them by hand, from '# >>> cotenant' to '# <<< cotenant'",
    };
  const next = placedInToml(text, program, via);
  if ("why" in next) return next;
  return { after: next.text === text ? null : next.text, placement: null, hasOurs: block !== null };
}

function recordFor(
  found: Found,
  { placement, hasOurs }: Exclude<Next, { why: string }>,
  isShared: boolean,
  isPrivate: boolean,
): Omit<FileRecord, "via"> {
  const { site, file } = found;
  // A file that has nothing of ours any more is somebody else's, whoever made it once.
  const old = file.isThere && !hasOurs ? null : found.record;
  const placements = old?.placements ?? [];
  return {
    path: site.path,
    harness: site.harness,
    isShared,
    isMade: file.isThere ? (old?.isMade ?? false) : true,
    madeDirectories: [...new Set([...(old?.madeDirectories ?? []), ...(file.isThere ? [] : file.missing)])],
    placements: placement === null ? placements : [placement, ...placements].slice(0, 2),
    ...(isPrivate && file.isThere ? { modeBefore: old?.modeBefore ?? file.mode } : {}),
  };
}

function remarksOn({ site, file, standing }: Found, isShared: boolean): string[] {
  const remarks: string[] = [];
  const read = site.format === "nested" && file.text !== null ? readSettings(file.text) : null;
  if (site.harness === "claude" && read !== null && !("why" in read) && hasOwnWorktrees(read.json))
    remarks.push(`${titleOf("claude")} has its worktrees made by somebody else's hook there: that one stays`);
  if (site.harness === "codex")
    remarks.push("Codex asks once before it runs a new hook: start it and say /hooks");
  if (site.harness === "pi" && site.level === "project")
    remarks.push(
      "pi loads nothing of a folder that it does not trust: say /trust in it, or give it --approve",
    );
  if (isShared && standing === "ignored")
    remarks.push(`Git ignores ${site.shown}, so that nobody else gets it`);
  return remarks;
}
