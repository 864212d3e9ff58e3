import { HARNESSES } from "../guard/harness";
import type { Installed, Left, Objection, Program, Standing } from "../installer/files";
import { withoutBlock } from "../installer/text-block";
import { hasTomlHooks, placedInToml, tomlBlock } from "./codex-toml";
import { type Via, type ViaName, viaName } from "./command-line";
import {
  hasOwnWorktrees,
  isBareFrame,
  isCurrent,
  type Placement,
  placed,
  readSettings,
  taken,
  titleOf,
  wantedIn,
} from "./json-settings";
import type { FoundFile } from "./look";
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
  readonly program: Installed;
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
  if (block === "damaged") return { why: DAMAGED };
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

/** What becomes of one file when ours goes out of it. `after` is null where the file goes, too. */
export interface Removal {
  readonly found: Found;
  readonly action: "removed" | "taken_out";
  readonly after: string | null;
}

export interface Removals {
  readonly removals: readonly Removal[];
  /** What stays, and why. */
  readonly left: readonly Left[];
  /** Those without anything of ours: whatever else was done for them, by somebody who did not finish, goes. */
  readonly absent: readonly Found[];
}

export function planUninstall(
  all: readonly Found[],
  { shared, digestOf }: { readonly shared: boolean; readonly digestOf: (text: string) => string },
): Removals {
  const removals: Removal[] = [];
  const left: Left[] = [];
  const absent: Found[] = [];
  for (const found of all) {
    const { site, file, record } = found;
    const outcome = outcomeOf(found, digestOf);
    if (outcome.is === "absent") absent.push(found);
    else if (outcome.is === "left") left.push({ path: site.path, why: outcome.why });
    else if (
      site.level === "project" &&
      !shared &&
      (found.standing === "tracked" || record?.isShared === true)
    )
      left.push({
        path: site.path,
        why: "it belongs to the project; add --shared to change it for everybody",
      });
    else {
      const { after } = outcome;
      removals.push({ found, action: after === null ? "removed" : "taken_out", after });
      if (outcome.remains !== null) left.push({ path: file.path, why: outcome.remains });
    }
  }
  return { removals, left, absent };
}

type Outcome =
  | { readonly is: "absent" }
  | { readonly is: "left"; readonly why: string }
  | { readonly is: "out"; readonly after: string | null; readonly remains: string | null };

const DAMAGED = "our lines in it are damaged; remove them by hand, from '# >>> cotenant' to '# <<< cotenant'";
const BY_HAND = "somebody wrote calls of cotenant by hand; they stay";

function outcomeOf({ site, file, record }: Found, digestOf: (text: string) => string): Outcome {
  const { text } = file;
  // What cannot be read cannot have been read by the harness either; but ours may be in it.
  if (text === null)
    return file.why === null || record === null ? { is: "absent" } : { is: "left", why: file.why };
  if (site.format === "plugin") {
    if (!isPlugin(text)) return { is: "absent" };
    if (!isAsWritten(text, digestOf))
      return { is: "left", why: `${CHANGED_BY_HAND}; keep elsewhere what you need of it, then delete it` };
    return { is: "out", after: null, remains: null };
  }
  if (site.format === "toml") {
    const block = tomlBlock(text);
    if (block === null) return { is: "absent" };
    if (block === "damaged") return { is: "left", why: DAMAGED };
    return { is: "out", after: withoutBlock(block), remains: null };
  }
  const read = readSettings(text);
  if ("why" in read)
    return record !== null || /guard (?:check|stop|end)/.test(text)
      ? { is: "left", why: `${read.why}; mend it, then run the same command again` }
      : { is: "absent" };
  const byHand = read.entries.some(({ isByHand }) => isByHand);
  if (read.entries.every(({ isByHand }) => isByHand))
    return byHand ? { is: "left", why: BY_HAND } : { is: "absent" };
  const out = taken(text, record?.placements ?? [], digestOf);
  if ("why" in out) return { is: "left", why: out.why };
  const isGone = (record?.isMade === true || site.isOwn) && isBareFrame(out.text);
  return { is: "out", after: isGone ? null : out.text, remains: byHand ? BY_HAND : null };
}
