import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Command, Context, Output } from "../../../cli/grammar/command";
import { readStdin } from "../../../cli/terminal/stdin";
import type { Workspace } from "../../../coordinator/workspace";
import { answerHook, type HookAnswer, type HookName } from "../answers/answer";

/** Each hook loads what it needs, and no other. */
const commits = () => import("../answers/commit");
const pushes = () => import("../answers/push");

/** Git takes a hook's answer from its exit status; whoever runs Git reads why. */
function output(context: Context, name: HookName, { isRefused, lines }: HookAnswer): Output {
  for (const line of lines) context.note(line);
  return { data: { hook: name, refused: isRefused }, text: "", exit: isRefused ? 1 : 0 };
}

async function asHook(
  context: Context,
  name: HookName,
  act: (workspace: Workspace) => Promise<HookAnswer>,
): Promise<Output> {
  return output(context, name, await answerHook(context, name, act));
}

const OF_A_CLONE = { flags: {}, remindsOfExpiry: false, enforcesConfig: true } as const;

export const preCommit: Command = {
  ...OF_A_CLONE,
  about:
    "What Git's pre-commit hook calls: refuses what somebody else holds, and issues changed without a claim.",
  flags: {
    staged: { meaning: "what Git says is staged is on standard input, as the hook's own line puts it there" },
  },
  examples: ["cotenant hook pre-commit"],
  words: { min: 0, max: 10 },
  run: (context, parsed) =>
    asHook(context, "pre-commit", async (workspace) => {
      const { answerStaged } = await commits();
      return answerStaged(workspace, parsed.has("staged") ? () => readFileSync(0) : null);
    }),
};

export const prepareCommitMessage: Command = {
  ...OF_A_CLONE,
  positional: "<file> [<source> [<commit>]]",
  about: "What Git's prepare-commit-msg hook calls: says in the message on which claims the commit rests.",
  examples: ["cotenant hook prepare-commit-msg .git/COMMIT_EDITMSG"],
  words: { min: 1, max: 3 },
  run: (context, parsed) =>
    asHook(context, "prepare-commit-msg", async (workspace) => {
      const [file, source] = parsed.words;
      const path = resolve(process.cwd(), file!);
      const { answerMessage } = await commits();
      const answer = await answerMessage(workspace, source, () => readFileSync(path, "utf8"));
      if (answer.message !== null) writeFileSync(path, answer.message);
      return answer;
    }),
};

export const postCommit: Command = {
  ...OF_A_CLONE,
  about:
    "What Git's post-commit hook calls: gives back what was committed, and puts on record what went around the hooks.",
  examples: ["cotenant hook post-commit"],
  words: { min: 0, max: 10 },
  run: (context) =>
    asHook(context, "post-commit", async (workspace) => (await commits()).answerCommitted(workspace)),
};

export const prePush: Command = {
  ...OF_A_CLONE,
  positional: "<remote> <url>",
  about:
    "What Git's pre-push hook calls: every pushed change of an issue or of a leased file had its lease when it was\ncommitted.",
  examples: ["cotenant hook pre-push origin ../hub.git < /dev/null"],
  words: { min: 0, max: 2 },
  run: (context) =>
    asHook(context, "pre-push", async (workspace) => {
      const input = await readStdin(1 << 20);
      return (await pushes()).answerPush(workspace, input);
    }),
};

export const preReceive: Command = {
  about:
    "What the pre-receive hook of a repository that people push to calls: pushed changes of issues and of leased files are\nheld against the leases that are kept there. What it cannot tell, it refuses.",
  flags: {},
  examples: ["cotenant hook pre-receive < /dev/null"],
  words: { min: 0, max: 0 },
  remindsOfExpiry: false,
  async run(context) {
    const { answerReceived } = await pushes();
    const answer = await answerReceived(context, () => readStdin(8 << 20));
    return output(context, "pre-receive", answer);
  },
};
