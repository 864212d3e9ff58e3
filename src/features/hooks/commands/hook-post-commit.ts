import type { Command } from "../../../cli/grammar/command";
import type { Workspace } from "../../../coordinator/workspace";
import { judgeHead } from "../commit";
import { dropNote, findNote } from "../commit-note";
import type { Objection } from "../commit-rules";
import { enforced, mayBeRuled } from "../path-rules";
import { isReplaying } from "../replaying";
import { recordViolation } from "../violations";
import { settleCommit } from "./guard-commit";
import { asHook, unusableNames } from "./hooking";

export const command: Command = {
  usage: "hook post-commit",
  about:
    "What Git's post-commit hook calls: gives back what was committed, and puts on record what went around the hooks.",
  flags: {},
  examples: ["cotenant hook post-commit"],
  words: { min: 0, max: 10 },
  remindsOfExpiry: false,
  enforcesConfig: true,
  run: (context) =>
    asHook(context, "post-commit", async (workspace) => {
      const known = await findNote(workspace, "committed");
      await dropNote(workspace);
      const isAsked = isEnforced(workspace) || mayBeRuled(workspace, known?.paths ?? null);
      // The pre-commit hook has looked at this very commit.
      const isJudged = !isAsked || known?.isClean === true;
      const judged = isJudged ? [] : await judge(workspace);
      // What is only made anew is given back when all of it is done.
      const settled = (await isReplaying(workspace)) ? [] : await settleCommit(workspace);
      return { isRefused: false, lines: [...judged, ...settled] };
    }),
};

/** A variable switches the hooks off for whoever sets it; it does not change what others hold. */
function isEnforced({ config }: Workspace): boolean {
  const key = "worktree.enforce_leases";
  if (config.values[key] !== "off") return true;
  const own = config.layers.find(({ source, entries }) => !PASSING.has(source) && entries.has(key));
  return PASSING.has(config.origin(key).source) && own?.entries.get(key)?.value !== "off";
}

const PASSING: ReadonlySet<string> = new Set(["flag", "environment"]);

/** What the hooks would have refused, had they been asked. */
async function judge(workspace: Workspace): Promise<string[]> {
  const { objections: all, commit } = await judgeHead(workspace);
  const objections = isEnforced(workspace) ? all : enforced("off", all).refused;
  if (objections.length === 0) return [];
  await recordViolation(await workspace.recorder(), commit, objections);
  return [
    `cotenant post-commit: ${commit.slice(0, 12)} goes against ${whatOf(objections)}:`,
    ...objections.slice(0, 5).map(({ message }) => `  ${message}`),
    "  it is on record; 'cotenant status' shows it",
    ...unusableNames("post-commit", await workspace.caller()),
  ];
}

function whatOf(objections: readonly Objection[]): string {
  const ruled = objections.filter(({ code }) => code === "E_PATH_RULE").length;
  const some = (count: number, one: string) => (count === 0 ? [] : [count === 1 ? `a ${one}` : `${one}s`]);
  return [...some(objections.length - ruled, "lease"), ...some(ruled, "rule")].join(" and ");
}
