import { CotenantError } from "../../errors/cotenant-error";
import { explainSandbox } from "../../identity/sandbox";
import { printable } from "../../kernel/ids";
import type { Files } from "../../platform/platform";
import { type Layout, layoutOf, modesFor } from "../../store/layout";
import { Alarm } from "./alarm";
import { ALLOWED, type Verdict } from "./answers";
import { type Checking, checkingOf, directoryOf } from "./check";
import { obstacles } from "./holders";
import { DEFAULT_SETTINGS, type GuardSettings, guardSettings } from "./settings";
import { appendText } from "./small-files";
import { whoIs } from "./who";
import { heldNow } from "./words";
import { openWorktree, repositoryOf } from "./worktree";
import type { World } from "./world";
import { type Group, locate } from "./write-target";

/** For a check that could not decide: `guard.on_failure` says what is answered, and the failure goes on record. */
export async function onFailure({ world, report, alarm }: Checking, error: unknown): Promise<Verdict> {
  // What was found out so far may be just what is wrong.
  const checking = checkingOf(world, report, alarm);
  const groups = await groupsOf(checking);
  const commits = await commitsOf(checking).catch(() => []);
  const concerned = [...groups, ...commits];
  const [first] = concerned;
  const why = wordsOf(
    first === undefined ? error : await explainSandbox(error, checking.world, first.repository),
  );
  const settings = await settingsOf(checking, concerned);
  const verdict = await judge(checking, settings, { groups, commits }, why);
  await putDown(checking.world, concerned, checking.report, why, verdict).catch(() => {});
  return verdict;
}

/** Of an event that nothing can be refused at. */
export async function noteFailure({ world, report }: Checking, error: unknown): Promise<void> {
  await putDown(world, [], report, wordsOf(error), ALLOWED).catch(() => {});
}

/** What a command line plainly writes, and what it may commit. */
interface Concerned {
  readonly groups: readonly Group[];
  readonly commits: readonly Group[];
}

async function judge(
  checking: Checking,
  { onFailure: rule }: GuardSettings,
  { groups, commits }: Concerned,
  why: string,
): Promise<Verdict> {
  const refusal = (what: string): Verdict => ({
    isAllowed: false,
    isHardStop: false,
    code: "E_STORE_BUSY",
    data: { why },
    reason: `cotenant: the guard cannot decide (${why}); ${what} ('cotenant doctor' shows what is wrong)`,
  });
  if (rule === "open") return ALLOWED;
  // Rules are about files: of a commit that names none, nobody knows which those are.
  const named = commits.filter(({ targets }) => targets.every(({ path }) => path !== "."));
  const ruled = await ruledAnyway(checking, [...groups, ...named]);
  if (ruled !== null) return ruled;
  if (rule === "closed") return refusal("refused, as guard.on_failure = closed says");
  const held = await knownToBeHeld(checking, groups).catch(() => null);
  if (held !== null) return refusal(`${held}. Nothing was written.`);
  const heldThere = await knownToBeHeld(checking, commits).catch(() => null);
  return heldThere === null
    ? ALLOWED
    : refusal(
        `${heldThere}, and may be committed by this. Nothing was run. Name files of your own: git commit -- <path>`,
      );
}

/** Rules need no store. */
async function ruledAnyway({ world, report }: Checking, groups: readonly Group[]): Promise<Verdict | null> {
  try {
    for (const { repository, targets } of groups) {
      const settings = await guardSettings(world, repository);
      if (settings.pathRules.length === 0) continue;
      const { forbidden } = await import("./path-rules");
      const verdict = await forbidden(
        { world, repository, settings, who: await whoIs(world, report) },
        targets,
      );
      if (verdict !== null) return verdict;
    }
  } catch {
    // Then it is answered as without rules.
  }
  return null;
}

/** Reads only, without the mutex: a broken store may still answer that. */
async function knownToBeHeld({ world, report }: Checking, groups: readonly Group[]): Promise<string | null> {
  const who = await whoIs(world, report);
  for (const { repository, targets } of groups) {
    const place = await openWorktree(world, repository, who);
    for (const [key, owner] of await obstacles(place, targets)) {
      const path = targets.find((target) => target.key === key)?.path ?? key;
      return heldNow({ path, key, owner });
    }
  }
  return null;
}

/** A shell command takes Git to be read, which may be what is broken. */
const LOOK_MS = 2_000;

async function groupsOf(checking: Checking): Promise<readonly Group[]> {
  const { world, wish } = checking;
  try {
    if (wish === null) return [];
    if (wish.kind === "shell")
      return await soon(world, async () => (await import("./shell/check")).groupsIn(checking, wish));
    const named = wish.paths.map((path) => ({ path, mode: "take" as const }));
    return await locate(world, directoryOf(checking), named);
  } catch {
    return [];
  }
}

/** What a shell command may commit, where Git itself asks nobody about it. */
async function commitsOf(checking: Checking): Promise<readonly Group[]> {
  const { world, wish } = checking;
  if (wish?.kind !== "shell") return [];
  const { mayBeCommittedIn } = await import("./shell/check");
  return soon(world, () => mayBeCommittedIn(checking, wish, { asksGit: true })).catch(() =>
    mayBeCommittedIn(checking, wish, { asksGit: false }),
  );
}

function soon<T>(world: World, look: () => Promise<T>): Promise<T> {
  const alarm = new Alarm(world.platform, { workMs: LOOK_MS, patienceMs: LOOK_MS });
  world.onAlarm?.(alarm);
  return alarm.watch(look);
}

async function settingsOf(checking: Checking, groups: readonly Group[]): Promise<GuardSettings> {
  const { world } = checking;
  try {
    const repository = groups[0]?.repository ?? (await repositoryOf(world, directoryOf(checking)));
    return repository === null ? DEFAULT_SETTINGS : await guardSettings(world, repository);
  } catch {
    return DEFAULT_SETTINGS;
  }
}

const LARGEST = 256 << 10;

/** In a file of its own: the log may be just what is broken. */
async function putDown(
  world: World,
  groups: readonly Group[],
  said: { readonly harness: string; readonly event: string; readonly cwd: string | null },
  why: string,
  verdict: Verdict,
): Promise<void> {
  const { files, clock } = world.platform;
  const repository = groups[0]?.repository ?? (await repositoryOf(world, said.cwd ?? world.cwd));
  if (repository === null) return;
  const { guard } = layoutOf(repository.controlDir);
  const modes = modesFor(repository.config.sharedRepository);
  await files.makeDirectory(guard, modes.directory);
  const path = `${guard}/failures.jsonl`;
  if (((await files.stat(path))?.size ?? 0) > LARGEST) await files.unlink(path);
  const line = {
    schema_version: 1,
    at: new Date(clock.wallMs()).toISOString(),
    harness: said.harness,
    event: said.event,
    why,
    answer: verdict.isAllowed ? "allowed" : "refused",
  };
  await appendText(files, path, `${JSON.stringify(line)}\n`, modes.file);
}

/** One of the lines of that file. */
export type GuardFailure = Readonly<Record<"at" | "harness" | "event" | "why" | "answer", string>>;

const MOST_READ = 10;

/** The last of them. Lines that cannot be read are passed over. */
export async function readFailures(
  files: Pick<Files, "readFile">,
  { guard }: Pick<Layout, "guard">,
): Promise<GuardFailure[]> {
  let text = "";
  try {
    text = new TextDecoder().decode((await files.readFile(`${guard}/failures.jsonl`)) ?? undefined);
  } catch {
    return [];
  }
  return text
    .split("\n")
    .slice(-MOST_READ - 1)
    .flatMap((line): GuardFailure[] => {
      try {
        const { at, harness, event, why, answer } = JSON.parse(line) as Record<string, unknown>;
        const texts = [at, harness, event, why, answer].map(String) as [
          string,
          string,
          string,
          string,
          string,
        ];
        return [{ at: texts[0], harness: texts[1], event: texts[2], why: texts[3], answer: texts[4] }];
      } catch {
        return [];
      }
    });
}

function wordsOf(error: unknown): string {
  const text =
    error instanceof CotenantError
      ? `${error.message} (${error.code})`
      : String((error as Error)?.message ?? error);
  return printable(text, 300);
}
