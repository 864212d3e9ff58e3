import type { Command, Context, Output } from "../../../cli/grammar/command";
import { readStdin } from "../../../cli/terminal/stdin";
import { CotenantError } from "../../../errors/cotenant-error";
import { rulingKey } from "../../../identity/path-keys";
import { printable } from "../../../kernel/ids";
import type { Git } from "../../../platform/git";
import { commitOf } from "../divergence";
import { judgeRevisions, type Testimony } from "../push";
import type { TipMove } from "../push-tips";
import { courtOf, type ServerRules, serverCoordinator, serverRules } from "../server";
import { pushRefusal } from "./hooking";

/** Where Git keeps what is pushed until the hook has let it in. */
const QUARANTINE = ["GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"];

export const command: Command = {
  usage: "hook pre-receive",
  about:
    "What the pre-receive hook of a repository that people push to calls: pushed changes of issues and of leased files are\nheld against the leases that are kept there. What it cannot tell, it refuses.",
  flags: {},
  examples: ["cotenant hook pre-receive < /dev/null"],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  async run(context) {
    try {
      return await received(context, await readStdin(8 << 20));
    } catch (error) {
      // Nobody looks after it: what nobody can tell must not come in.
      const why = error instanceof CotenantError ? `${error.message} (${error.code})` : String(error);
      context.note(`cotenant pre-receive (layer 4): cannot tell, and so refuses: ${printable(why, 400)}`);
      if (error instanceof CotenantError && error.hint !== "") context.note(`  next: ${error.hint}`);
      return answered(true);
    }
  },
};

async function received(context: Context, input: string): Promise<Output> {
  const { platform, git, env, cwd } = context.surroundings();
  const gitDir = (await platform.files.realPath(env["GIT_DIR"] ?? cwd)) ?? cwd;
  const bare = { cwd: gitDir, env: { GIT_DIR: gitDir } };
  const rules = await serverRules(git, bare);
  const moves = movesOf(input, rules);
  if (moves.length === 0) return answered(false);
  const coordinator = await serverCoordinator(platform, gitDir);
  const { claimTestimony } = await import("../../ledger/witness");
  const claims =
    (await claimTestimony(git, bare, rules.claimsPrefix, platform.clock.wallMs())) ??
    (await noClaims(git, gitDir, rules));
  const quarantine = Object.fromEntries(
    QUARANTINE.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]!]])),
  );
  const repository = { config: { ignoreCase: rules.ignoreCase } };
  const place = { cwd: gitDir, env: { ...quarantine, GIT_DIR: gitDir } };
  const { branches, pathRules } = await courtOf(git, bare, rules, { moves, place });
  const { objections } = await judgeRevisions(
    {
      git,
      place,
      coordinator,
      claims,
      digest: platform.digest,
      mode: "at_commit",
      keyOf: (path) => rulingKey({ repository }, path),
      pathRules,
      pusher: null,
      hasHooks: false,
      branches,
    },
    // What is only on the ledger's own refs was never looked at: it excludes nothing.
    {
      names: moves.map(({ to }) => to),
      options: [
        "--not",
        `--exclude=refs/heads/${rules.ledgerBranch}`,
        `--exclude=${rules.claimsPrefix}*`,
        "--all",
        "--not",
      ],
    },
    moves,
  );
  if (objections.length === 0) return answered(false);
  for (const line of pushRefusal("pre-receive", objections)) context.note(line);
  return answered(true);
}

/** Where there is a ledger, claims that are gone are no reason to let everything in. */
async function noClaims(git: Git, gitDir: string, { ledgerBranch }: ServerRules): Promise<Testimony | null> {
  if ((await commitOf(git, gitDir, `refs/heads/${ledgerBranch}`, { GIT_DIR: gitDir })) === null) return null;
  return { witness: { lease: () => null, written: () => null }, held: new Map() };
}

function answered(isRefused: boolean): Output {
  return { data: { hook: "pre-receive", refused: isRefused }, text: "", exit: isRefused ? 1 : 0 };
}

const LINE = /^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) ([^ \n]+)$/;
const NOTHING = /^0+$/;

/** `<old id> <new id> <ref>` on each line. Deletions bring nothing, and the ledger's own refs are no work of anybody. */
function movesOf(input: string, { ledgerBranch, claimsPrefix }: ServerRules): TipMove[] {
  return input.split("\n").flatMap((line): TipMove[] => {
    if (line === "") return [];
    const [, from, to, ref] = LINE.exec(line) ?? [];
    if (ref === undefined)
      throw new CotenantError("E_GIT", "Git does not say what is pushed in a form that is known here");
    if (ref === `refs/heads/${ledgerBranch}` || ref.startsWith(claimsPrefix)) return [];
    return NOTHING.test(to!) ? [] : [{ ref, to: to!, from: NOTHING.test(from!) ? null : from! }];
  });
}
