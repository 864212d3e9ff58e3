import { printable } from "../../kernel/ids";
import { kindOf } from "../../kernel/keys";
import { type PathJudge, type PlacedRule, pathJudge, ruledOut, whatInstead } from "../../kernel/path-rules";
import { andMore } from "../../kernel/printing";
import { gitList, gitWords } from "../../platform/git-answers";
import type { Verdict } from "./answers";
import type { GuardedWorktree } from "./worktree";
import type { WriteTarget } from "./write-target";

/** What of a place it takes to judge; no store. */
type Ruled = Pick<GuardedWorktree, "world" | "repository" | "settings" | "who">;

/** What the rules of the place say to the agent; null where none binds it. */
export function judgeOf(
  { settings, repository, who }: Ruled,
  rules: readonly PlacedRule[] = settings.pathRules,
): PathJudge | null {
  return pathJudge({ rules, ignoreCase: repository.config.ignoreCase }, [who.agentId]);
}

interface Denied {
  readonly path: string;
  readonly rule: PlacedRule;
}

/** The refusal where one of the targets may not be written by this agent, whoever holds it. */
export async function forbidden(place: Ruled, targets: readonly WriteTarget[]): Promise<Verdict | null> {
  const judge = judgeOf(place);
  if (judge === null) return null;
  for (const target of targets) {
    const denied = await deniedIn(place, judge, target);
    if (denied !== null) return refusal(place, denied);
  }
  return null;
}

async function deniedIn(place: Ruled, judge: PathJudge, { key, path }: WriteTarget): Promise<Denied | null> {
  if (kindOf(key) === "file") {
    const rule = judge.writing(path);
    return rule === null ? null : { path, rule };
  }
  // A command that goes over a directory writes what is in it.
  for (const file of await filesIn(place, path)) {
    const rule = judge.writing(file);
    if (rule !== null) return { path: file, rule };
  }
  const rule = judge.anythingIn(path);
  return rule === null ? null : { path, rule };
}

/** What Git knows of, or would: what it ignores is nobody's work. */
async function filesIn({ world, repository }: Ruled, directory: string): Promise<string[]> {
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"];
  const named = directory === "." ? [] : [`:(top,literal)${directory}`];
  const { status, stdout, stderr } = await world.git.run([...args, ...named], {
    cwd: repository.worktreeRoot,
  });
  if (status !== 0) throw new Error(`Git does not say what is in ${directory}: ${gitWords(stderr)}`);
  return gitList(new TextDecoder().decode(stdout));
}

function refusal({ who }: Ruled, { path, rule }: Denied): Verdict {
  const name = printable(path, 300);
  return {
    isAllowed: false,
    isHardStop: false,
    code: "E_PATH_RULE",
    data: { path, rule: rule.text, place: rule.place },
    reason: [
      `cotenant: ${name}: ${ruledOut(rule, path, [who.agentId])}. Nothing was written.`,
      `Do not write it by another way. Go on without it, and tell the person you work for: ${whatInstead(rule)}.`,
    ].join("\n"),
  };
}

const MOST_NAMED = 5;

/** What an agent hears after a command that nobody could read. Who wrote them is not proved. */
export function changedMeanwhile(
  place: Ruled,
  rules: readonly PlacedRule[],
  paths: readonly string[],
): string {
  const judge = judgeOf(place, rules);
  const broken = new Set(paths.map((path) => judge?.writing(path) ?? null).filter((rule) => rule !== null));
  const names = paths.slice(0, MOST_NAMED).map((path) => printable(path, 200));
  const more = andMore(paths.length - MOST_NAMED);
  const said = [...broken].map(({ text, place: at }) => `"${printable(text, 200)}" (${printable(at, 300)})`);
  return `cotenant: ${names.join(", ")}${more} changed while your command ran, and ${place.who.agentId} may not write there: ${said.join(", ")}. If your command did it, take it back; a commit of it is refused. Tell the person you work for.`;
}
