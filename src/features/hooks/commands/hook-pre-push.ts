import type { Command } from "../../../cli/grammar/command";
import { readStdin } from "../../../cli/terminal/stdin";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import type { Revisions } from "../../../git/commits";
import { rulingKey } from "../../../identity/path-keys";
import { testimony } from "../../ledger/commands/ledger";
import { mainRef } from "../divergence";
import { allowedHere } from "../global-operations";
import { enforced, rulesHere, withMain } from "../path-rules";
import { judgeRevisions } from "../push";
import { type BranchRules, mainThere } from "../push-branches";
import type { PushObjection } from "../push-rules";
import type { TipMove } from "../push-tips";
import { asHook, type HookAnswer, PASSED, pushRefusal, unusableNames } from "./hooking";

const NOTHING = /^0+$/;
/** What is pushed may be named with spaces (`main@{1 day ago}`), where it goes may not. */
const LINE = /^[^\n]* ([0-9a-f]{40,64}) ([^ ]+) ([0-9a-f]{40,64})$/;

export const command: Command = {
  usage: "hook pre-push <remote> <url>",
  about:
    "What Git's pre-push hook calls: every pushed change of an issue or of a leased file had its lease when it was\ncommitted.",
  flags: {},
  examples: ["cotenant hook pre-push origin ../hub.git < /dev/null"],
  words: { min: 0, max: 2 },
  remindsOfExpiry: false,
  enforcesConfig: true,
  run: (context) =>
    asHook(context, "pre-push", async (workspace) => {
      const moves = movesOf(await readStdin(1 << 20));
      return moves.length === 0 ? PASSED : answer(workspace, moves);
    }),
};

/** What is pushed: `<local ref> <local id> <remote ref> <remote id>` on each line. Deletions bring nothing. */
export function movesOf(input: string): TipMove[] {
  return input.split("\n").flatMap((line): TipMove[] => {
    if (line === "") return [];
    const [, to, ref, from] = LINE.exec(line) ?? [];
    if (to === undefined)
      throw new CotenantError("E_GIT", "Git does not say what is pushed in a form that is known here");
    return NOTHING.test(to) ? [] : [{ ref: ref!, to, from: NOTHING.test(from!) ? null : from! }];
  });
}

/** What no remote has yet: what is published anywhere was looked at when it was, and may go to others. */
export function revisionsOf(moves: readonly TipMove[]): Revisions {
  const known = moves.flatMap(({ from }) => (from === null ? [] : [`^${from}`]));
  return {
    names: [...moves.map(({ to }) => to), ...known],
    options: ["--not", "--remotes", "--not"],
  };
}

async function remoteTips(
  { surroundings, repository }: Workspace,
  branches: readonly string[],
): Promise<string[]> {
  if (branches.length === 0) return [];
  const { stdout } = await surroundings.git.run(
    ["for-each-ref", "--format=%(objectname)", ...branches.map((name) => `refs/remotes/*/${name}`)],
    { cwd: repository.worktreeRoot },
  );
  return new TextDecoder().decode(stdout).split("\n").slice(0, -1);
}

async function answer(workspace: Workspace, pushed: readonly TipMove[]): Promise<HookAnswer> {
  const { repository, surroundings, config, coordinator } = workspace;
  const { git, platform } = surroundings;
  const { values } = config;
  const cwd = repository.worktreeRoot;
  const mode = values["worktree.enforce_leases"];
  const place = { cwd };
  const configured = values["global_operations.main_branch"];
  const main = await mainRef(git, cwd, configured);
  const mainNames = configured === null ? ["main", "master"] : [configured];
  const branches: BranchRules = {
    allowed: values["global_operations.allowed_branches"],
    main,
    mainNames: main === null ? mainNames : [main.branch],
    requireHistory: values["global_operations.require_main_history"],
    howToAllow: (branch) => allowedHere(config, "git push", branch),
    allowedTips: () => remoteTips(workspace, values["global_operations.allowed_branches"]),
  };
  const moves = await onlyKnown(workspace, pushed);
  const known = await withMain(rulesHere(workspace), { git, place }, main);
  const pathRules = await withMain(known, { git, place }, mainThere(branches, moves));
  if (mode === "off" && pathRules.rules.length === 0) return PASSED;
  const caller = await workspace.caller();
  const { objections } = await judgeRevisions(
    {
      git,
      place,
      coordinator,
      claims: await testimony(workspace, false),
      digest: platform.digest,
      mode: values["enforce.push"],
      keyOf: (path) => rulingKey(workspace, path),
      pathRules,
      pusher: caller.agent?.agentId ?? null,
      hasHooks: true,
      branches,
    },
    revisionsOf(moves),
    moves,
  );
  const { refused, warned } = enforced(mode, objections);
  const lines = (some: readonly PushObjection[]) => (some.length === 0 ? [] : pushRefusal("pre-push", some));
  const through = warned.length === 0 ? [] : ["  let through: worktree.enforce_leases = warn"];
  // What can be understood of the main branch's rules holds.
  const unread = [...known.problems, ...pathRules.problems].map(
    ({ place: at, message }) => `cotenant pre-push: ${at}: ${message}`,
  );
  return {
    isRefused: refused.length > 0,
    lines: [...lines(warned), ...through, ...lines(refused), ...unread, ...unusableNames("pre-push", caller)],
  };
}

/** What the remote has and this clone does not know of excludes nothing, and cannot be compared with. */
async function onlyKnown(
  { surroundings, repository }: Workspace,
  moves: readonly TipMove[],
): Promise<TipMove[]> {
  return Promise.all(
    moves.map(async (move) => {
      if (move.from === null) return move;
      const { status } = await surroundings.git.run(["cat-file", "-e", `${move.from}^{commit}`], {
        cwd: repository.worktreeRoot,
      });
      return status === 0 ? move : { ...move, from: null };
    }),
  );
}
