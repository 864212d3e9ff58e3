import { judgeRevisions } from "../../enforce/push";
import { serverCoordinator } from "../../enforce/server";
import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import type { Git, GitOptions } from "../../platform/git";
import type { Command, Context, Output } from "../command";
import { pushRefusal } from "../hooking";
import { readStdin } from "../stdin";

/** Where Git keeps what is pushed until the hook has let it in. */
const QUARANTINE = ["GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH"];

export const command: Command = {
  usage: "hook pre-receive",
  about:
    "What the pre-receive hook of a repository that people push to calls: trailers of pushed changes of issues are\nheld against the claims that are kept there.",
  flags: {},
  examples: ["cotenant hook pre-receive < /dev/null"],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  async run(context) {
    const input = await readStdin(8 << 20);
    try {
      return await received(context, input);
    } catch (error) {
      // Nobody can ask the person who pushes: what cannot be told is let through, and said.
      const why = error instanceof CotenantError ? `${error.message} (${error.code})` : String(error);
      context.note(`cotenant pre-receive: cannot tell: ${printable(why, 400)}; let through`);
      return { data: { hook: "pre-receive", refused: false }, text: "", exit: 0 };
    }
  },
};

async function received(context: Context, input: string): Promise<Output> {
  const { platform, git, env, cwd } = context.surroundings();
  const gitDir = (await platform.files.realPath(env["GIT_DIR"] ?? cwd)) ?? cwd;
  const bare = { cwd: gitDir, env: { GIT_DIR: gitDir } };
  const names = await ledgerNames(git, bare);
  const tips = tipsOf(input, names);
  if (tips.length === 0) return passed();
  const coordinator = await serverCoordinator(platform, gitDir);
  const { claimTestimony } = await import("../../ledger/witness");
  const claims = await claimTestimony(git, bare, names.prefix, platform.clock.wallMs());
  if (coordinator === null && claims === null) return passed();
  const quarantine = Object.fromEntries(
    QUARANTINE.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]!]])),
  );
  const place = { cwd: gitDir, env: { ...quarantine, GIT_DIR: gitDir } };
  const { objections } = await judgeRevisions(
    { git, place, coordinator, claims, digest: platform.digest, mode: "at_commit" },
    // What is only on the ledger's own refs was never looked at: it excludes nothing.
    {
      names: tips,
      options: [
        "--not",
        `--exclude=refs/heads/${names.branch}`,
        `--exclude=${names.prefix}*`,
        "--all",
        "--not",
      ],
    },
  );
  if (objections.length === 0) return passed();
  for (const line of pushRefusal("pre-receive", objections)) context.note(line);
  return { data: { hook: "pre-receive", refused: true }, text: "", exit: 1 };
}

interface LedgerNames {
  readonly branch: string;
  readonly prefix: string;
}

/** How the ledger is called on this server, for those who have given it other names. */
async function ledgerNames(git: Git, place: Pick<GitOptions, "cwd" | "env">): Promise<LedgerNames> {
  const { stdout } = await git.run(["config", "--null", "--get-regexp", "^cotenant\\."], place);
  const values = new Map(
    new TextDecoder()
      .decode(stdout)
      .split("\0")
      .map((entry) => entry.split("\n") as [string, string]),
  );
  return {
    branch: values.get("cotenant.ledgerbranch") ?? "cotenant-sync",
    prefix: values.get("cotenant.claimsprefix") ?? "refs/cotenant/claims/",
  };
}

function passed(): Output {
  return { data: { hook: "pre-receive", refused: false }, text: "", exit: 0 };
}

/** `<old id> <new id> <ref>` on each line. Deletions bring nothing, and the ledger's own refs are no work of anybody. */
function tipsOf(input: string, { branch, prefix }: LedgerNames): string[] {
  return input.split("\n").flatMap((line) => {
    const [, tip = "", ref = ""] = line.split(" ");
    if (ref === `refs/heads/${branch}` || ref.startsWith(prefix)) return [];
    return /^[0-9a-f]{40,64}$/.test(tip) && !/^0+$/.test(tip) ? [tip] : [];
  });
}
