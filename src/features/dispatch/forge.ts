import { CotenantError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { shellWord } from "../../kernel/printing";
import { newUlid } from "../../platform/new-ulid";
import { pushUnderClaims } from "../publish/claim-push";
import { ClaimsUnder } from "../publish/claims";
import { remoteFor } from "../publish/push";
import { headOf } from "./branches";
import type { DispatchParts } from "./report";
import type { Station } from "./slots";
import type { Turn } from "./turn";

/** The command lines of forges that open a request to merge; the first that is there is used. */
const FORGES = [
  {
    program: "gh",
    line: 'gh pr create --head "$PR_HEAD" --base "$PR_BASE" --title "$PR_TITLE" --body "$PR_BODY"',
    /** One that is open already counts as made; `pr view` would answer with one that was closed, too. */
    look: 'gh pr list --head "$PR_HEAD" --base "$PR_BASE" --state open --json url --jq ".[].url"',
  },
  {
    program: "glab",
    line: 'glab mr create --yes --source-branch "$PR_HEAD" --target-branch "$PR_BASE" --title "$PR_TITLE" --description "$PR_BODY"',
    look: 'glab mr view "$PR_HEAD" --output json | sed -n \'s/.*"web_url":"\\([^"]*\\)".*/\\1/p\'',
  },
] as const;

export type Forge = (typeof FORGES)[number];

export async function forgeHere({ hasProgram }: Pick<DispatchParts, "hasProgram">): Promise<Forge> {
  for (const forge of FORGES) if (await hasProgram(forge.program)) return forge;
  throw new CotenantError("E_NO_COMMAND", "neither gh nor glab is here to open pull requests with", {
    hint: "install one of them; or leave out --pr: each branch is left as it is, to be pushed by hand",
    data: { programs: FORGES.map(({ program }) => program) },
  });
}

/** Pushes a worker's branch, fenced by the claims that its commits name; throws what the remote says otherwise. */
export async function pushBranch(
  parts: DispatchParts,
  { workspace, session, ...station }: Station,
  branch: string,
  named: string | null,
): Promise<string> {
  const ref = `refs/heads/${branch}`;
  const remote = await remoteFor(workspace, named, ref);
  const commit = await headOf({ workspace, session, ...station });
  const claims = new ClaimsUnder(workspace, session, parts.openFence(workspace, session));
  const pushed = await pushUnderClaims(workspace, session, claims, {
    ...{ remote, ref, commit, publishId: newUlid(workspace.surroundings.platform) },
  });
  if (!("why" in pushed)) return remote;
  throw new CotenantError("E_PUSH_REJECTED", `${printable(branch, 200)} was not pushed: ${pushed.why}`, {
    hint: `look at the remote, then: git push ${shellWord(remote)} ${shellWord(branch)}`,
    data: { branch, remote, result: pushed.result },
  });
}

/** Pushes the branch of a worker's issue, and sees to it that a request to merge it is open. */
export async function requestMerge(turn: Turn): Promise<void> {
  const { crew, station, issue } = turn;
  const { title, shortId, id } = issue.row;
  const head = turn.branch!;
  await pushBranch(crew.parts, station, head, crew.options.push ?? null);
  turn.pullRequest = await openRequest(crew.parts, crew.forge!, station, {
    ...{ head, base: crew.targetName, title: printable(title, 200) },
    body: `Issue ${shortId} (${id}).`,
  });
}

const TIMEOUT_MS = 2 * 60_000;
const URL = /https?:\/\/\S+/g;

/** Answers where the request is. */
async function openRequest(
  { commands }: DispatchParts,
  forge: Forge,
  { root }: Pick<Station, "root">,
  request: { readonly head: string; readonly base: string; readonly title: string; readonly body: string },
): Promise<string> {
  const run = (line: string) =>
    commands.run({
      line,
      cwd: root,
      env: {
        ...{ PR_HEAD: request.head, PR_BASE: request.base, PR_TITLE: request.title, PR_BODY: request.body },
        COTENANT_SECRET: undefined,
        GH_PROMPT_DISABLED: "1",
      },
      timeoutMs: TIMEOUT_MS,
      keepBytes: 4_096,
    });
  const found = await run(forge.look);
  const open = found.exitStatus === 0 ? found.output.match(URL)?.at(-1) : undefined;
  if (open !== undefined) return open;
  const made = await run(forge.line);
  const url = made.output.match(URL)?.at(-1);
  if (made.exitStatus === 0 && url !== undefined) return url;
  const said = printable(made.output.trim().split("\n").at(-1) ?? "", 300);
  throw new CotenantError(
    "E_CHECK_FAILED",
    `${forge.program} opened no request for ${printable(request.head, 200)}: ${said}`,
    {
      hint: `the branch is pushed; open it by hand: ${forge.program} ${forge.program === "gh" ? "pr" : "mr"} create --help`,
      data: { program: forge.program, exit_status: made.exitStatus },
    },
  );
}
