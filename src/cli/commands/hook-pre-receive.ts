import { judgeRevisions } from "../../enforce/push";
import { serverCoordinator } from "../../enforce/server";
import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
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
  const coordinator = await serverCoordinator(platform, gitDir);
  const tips = tipsOf(input);
  if (coordinator === null || tips.length === 0) return passed();
  const quarantine = Object.fromEntries(
    QUARANTINE.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]!]])),
  );
  const place = { cwd: gitDir, env: { ...quarantine, GIT_DIR: gitDir } };
  const { objections } = await judgeRevisions(
    { git, place, coordinator, digest: platform.digest, mode: "at_commit" },
    { names: tips, options: ["--not", "--all", "--not"] },
  );
  if (objections.length === 0) return passed();
  for (const line of pushRefusal("pre-receive", objections)) context.note(line);
  return { data: { hook: "pre-receive", refused: true }, text: "", exit: 1 };
}

function passed(): Output {
  return { data: { hook: "pre-receive", refused: false }, text: "", exit: 0 };
}

/** `<old id> <new id> <ref>` on each line. Deletions bring nothing. */
function tipsOf(input: string): string[] {
  return input.split("\n").flatMap((line) => {
    const [, tip = ""] = line.split(" ");
    return /^[0-9a-f]{40,64}$/.test(tip) && !/^0+$/.test(tip) ? [tip] : [];
  });
}
