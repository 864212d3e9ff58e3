import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command } from "../../../cli/grammar/command";
import type { Workspace } from "../../../coordinator/workspace";
import { judgeStaged } from "../commit";
import { messageTrailers } from "../commit-message";
import { findNote } from "../commit-note";
import { hooksWord } from "../installing/upkeep";
import { parseTrailers, withoutTrailers } from "../trailers";
import { isReverting } from "./amending";
import { answerCommit } from "./commit-answer";
import { amends, noteOf } from "./commit-notes";
import { asHook, PASSED } from "./hooking";

export const command: Command = {
  usage: "hook prepare-commit-msg <file> [<source> [<commit>]]",
  about: "What Git's prepare-commit-msg hook calls: says in the message on which claims the commit rests.",
  flags: {},
  examples: ["cotenant hook prepare-commit-msg .git/COMMIT_EDITMSG"],
  words: { min: 1, max: 3 },
  remindsOfExpiry: false,
  enforcesConfig: true,
  run: (context, parsed) =>
    asHook(context, "prepare-commit-msg", async (workspace) => {
      const [file, source] = parsed.words;
      const path = resolve(process.cwd(), file!);
      // Git did not call the other one, as it does for all but merges: this commit has been judged by nobody.
      if (source !== "merge" && (isReverting() || (await lacksPreCommit(workspace)))) {
        const answer = await answerCommit(workspace, null);
        if (answer.isRefused) return answer;
      }
      const known = await findNote(workspace, "staged");
      const { trailers, paths } = known ?? (await noteOf(workspace, await judgeStaged(workspace)));
      const text = readFileSync(path, "utf8");
      const lines = await messageTrailers(workspace, parseTrailers(trailers.join("\n")), {
        text,
        isAmending: await amends(workspace, paths.length),
      });
      if (lines.length > 0) await addTrailers(workspace, path, text, lines);
      return PASSED;
    }),
};

async function lacksPreCommit(workspace: Workspace): Promise<boolean> {
  return (await hooksWord(workspace))?.hooks.includes("pre-commit") === true;
}

/** Git knows where trailers go in a message, and what of it is a comment, if its last line has an end: that of a merge has none. */
async function addTrailers(
  workspace: Workspace,
  path: string,
  before: string,
  lines: readonly string[],
): Promise<void> {
  const { git } = workspace.surroundings;
  const { status, stdout } = await git.run(
    ["interpret-trailers", "--if-exists", "add", ...lines.flatMap((line) => ["--trailer", line])],
    { cwd: workspace.repository.worktreeRoot, input: withoutTrailers(before).replace(/[^\n]$/, "$&\n") },
  );
  if (status === 0) writeFileSync(path, stdout);
}
