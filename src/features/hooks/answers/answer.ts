import type { Whereabouts, Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import type { KnownCaller } from "../../../identity/known-caller";
import { explainSandbox } from "../../../identity/sandbox";
import { printable } from "../../../kernel/ids";
import { count, shellWord } from "../../../kernel/printing";
import type { Platform } from "../../../platform/platform";
import type { Objection } from "../commit-rules";
import type { PushObjection } from "../push-rules";

export type HookName = "pre-commit" | "prepare-commit-msg" | "post-commit" | "pre-push" | "pre-receive";

/** Which line of defence speaks, as docs/HOOKS.md numbers them. The command line itself is the first. */
const LAYERS: Readonly<Record<HookName, number>> = {
  "pre-commit": 2,
  "prepare-commit-msg": 2,
  "post-commit": 2,
  "pre-push": 3,
  "pre-receive": 4,
};

export interface HookAnswer {
  readonly isRefused: boolean;
  /** For whoever runs Git, on standard error. */
  readonly lines: readonly string[];
}

export const PASSED: HookAnswer = { isRefused: false, lines: [] };

/**
 * Answers a hook within its deadline. Whatever goes wrong in it is answered as `enforce.on_failure` says: a broken tool must
 * not decide by accident whether people can commit.
 */
export async function answerHook(
  where: Whereabouts,
  name: HookName,
  act: (workspace: Workspace) => Promise<HookAnswer>,
): Promise<HookAnswer> {
  let workspace: Workspace;
  try {
    workspace = await where.workspace();
  } catch (error) {
    if (error instanceof CotenantError && error.code === "E_NOT_A_REPO") return PASSED;
    // Nothing can be read that would say what is wanted, but for what whoever runs it has said.
    return failed(
      name,
      error,
      where.surroundings().env["COTENANT_ENFORCE_ON_FAILURE"] === "closed" ? "closed" : "open",
    );
  }
  const { config, store } = workspace;
  const deadlineMs = config.values["enforce.deadline_secs"] * 1000;
  try {
    if ((await store.platform.files.stat(store.layout.root)) === null) return PASSED;
    return await within(store.platform, deadlineMs, act(workspace));
  } catch (error) {
    const why = await explainSandbox(error, workspace.surroundings, workspace.repository);
    return failed(name, why, config.values["enforce.on_failure"]);
  }
}

async function within<T>({ timers }: Platform, ms: number, act: Promise<T>): Promise<T> {
  const deadline = timers.sleep(ms);
  const late = deadline.done.then(() => {
    throw new CotenantError("E_STORE_BUSY", `no answer within ${ms / 1000} s`, {
      hint: "look at what holds the store ('cotenant doctor'), or allow more time: enforce.deadline_secs",
    });
  });
  try {
    return await Promise.race([act, late]);
  } finally {
    // Nobody is told of it any more.
    late.catch(() => {});
    deadline.wake();
  }
}

function failed(name: HookName, error: unknown, onFailure: "open" | "closed"): HookAnswer {
  const why = error instanceof CotenantError ? `${error.message} (${error.code})` : String(error);
  const isRefused = onFailure === "closed";
  const what = name === "pre-push" ? "WARNING: nothing of this push was checked" : "cannot tell";
  return {
    isRefused,
    lines: [
      `cotenant ${name}: ${what}: ${printable(why, 400)}`,
      isRefused
        ? "  refused, as enforce.on_failure = closed says; 'cotenant doctor' shows what is wrong"
        : "  let through, as enforce.on_failure = open says; 'cotenant doctor' shows what is wrong",
    ],
  };
}

/** Whoever said who they are in a way that counts for nothing has to hear of it. */
export function unusableNames(name: HookName, { agent, unusable }: KnownCaller): string[] {
  const as = agent?.agentId ?? "somebody who has not said who they are";
  return unusable.map((why) => `cotenant ${name}: judged as ${as}: ${printable(why, 400)}`);
}

const MOST_SHOWN = 20;
/** Paths in a command to copy. */
const MOST_NAMED = 50;

/** What was looked at: what only warns comes first, and whoever has hidden who they are is told so last. */
export function judged<T extends Objection | PushObjection>(
  { refused, warned }: { readonly refused: readonly T[]; readonly warned: readonly T[] },
  lines: (some: readonly T[]) => readonly string[],
  remarks: readonly string[],
): HookAnswer {
  const of = (some: readonly T[]) => (some.length === 0 ? [] : lines(some));
  const through = warned.length === 0 ? [] : ["  let through: worktree.enforce_leases = warn"];
  return { isRefused: refused.length > 0, lines: [...of(warned), ...through, ...of(refused), ...remarks] };
}

/** What is refused, whose it is, and the exact way to go on. */
export function refusalLines(
  name: HookName,
  objections: readonly Objection[],
  committer: string | null,
  /** `:/` where Git runs below the root, so that paths in commands are found from there. */
  { own, root }: { readonly own: readonly string[]; readonly root: "" | ":/" },
): string[] {
  const who = committer ?? "somebody who has not said who they are";
  const lines = objectionLines(name, objections, `may not be committed by ${who}`);
  const ways = committer === null ? [SAY_WHO] : [];
  ways.push(...new Set(objections.map(({ hint }) => hint).filter((text) => text !== "")));
  lines.push(...ways.map((way) => `  next: ${way}`));
  const isRuled = ({ code }: Objection) => code === "E_PATH_RULE";
  const theirs = objections.filter((one) => one.owner !== null || isRuled(one)).map(({ path }) => path);
  const isLeased = objections.some((one) => one.owner !== null);
  if (theirs.length > 0)
    lines.push(
      `  ${ways.length === 0 ? "next" : "or"}: ${withoutTheirs(
        theirs.map((path) => `${root}${path}`),
        own.map((path) => `${root}${path}`),
        isLeased,
      )}`,
    );
  return lines;
}

const SAY_WHO =
  "say who commits: export COTENANT_AGENT_ID=human:<you>, or 'cotenant config set --global agent.id human:<you>'";

/** The same for commits that exist already. */
export function pushRefusal(name: HookName, objections: readonly PushObjection[]): string[] {
  const lines = objectionLines(name, objections, "may not be pushed");
  for (const hint of [...new Set(objections.map(({ hint }) => hint))].slice(0, 5))
    lines.push(`  next: ${hint}`);
  return lines;
}

function objectionLines(
  name: HookName,
  objections: readonly Pick<Objection, "message" | "code">[],
  what: string,
): string[] {
  const lines = [`cotenant ${name} (layer ${LAYERS[name]}): ${count(objections.length, "change")} ${what}`];
  for (const { message, code } of objections.slice(0, MOST_SHOWN)) lines.push(`  ${message} (${code})`);
  if (objections.length > MOST_SHOWN) lines.push(`  … and ${objections.length - MOST_SHOWN} more`);
  return lines;
}

/** Unstaging by 'git reset' also works before the first commit. */
function withoutTheirs(theirs: readonly string[], own: readonly string[], isLeased: boolean): string {
  if (own.length > 0 && own.length <= MOST_NAMED)
    return `commit only yours: git commit -m <message> -- ${own.map(shellWord).join(" ")}`;
  const named = [...new Set(theirs)].slice(0, MOST_NAMED).map(shellWord).join(" ");
  const then = own.length > 0 ? ", and commit again" : isLeased ? ", and wait for it" : "";
  return `unstage what is ${isLeased ? "theirs" : "not yours to write"}${then}: git reset -q -- ${named}`;
}
