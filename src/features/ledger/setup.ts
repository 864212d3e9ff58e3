import type { Workspace } from "../../coordinator/workspace";
import { CotenantError, gitError, policyError } from "../../errors/cotenant-error";
import { printable } from "../../kernel/ids";
import { newUlid } from "../../platform/new-ulid";
import { blobsOf, commitFiles, isFitName, parseTree } from "./commit";
import { join } from "./membership";
import { mending } from "./mending-remote";
import type { OpenLedger } from "./open";
import { makePlace, networkWarning } from "./place";
import { encodeTokens, TOKENS_PATH } from "./tokens";

export interface SetUp {
  readonly createdBranch: boolean;
  readonly createdCopy: boolean;
  readonly head: string;
}

/**
 * Makes the ledger, or attaches to one that is there. Nothing of the user's working tree is touched: a new branch begins
 * with what is committed. Doing it twice changes nothing.
 */
export async function setUpLedger(open: OpenLedger, workspace: Workspace, author: string): Promise<SetUp> {
  const warn = (warning: string) => void workspace.warnings.push(warning);
  return mending(open.copy, warn, () => setUpOnce(open, workspace, author));
}

async function setUpOnce(open: OpenLedger, workspace: Workspace, author: string): Promise<SetUp> {
  const { copy, remote } = open;
  const { platform } = workspace.surroundings;
  await refuseShallow(workspace);
  await makePlace(platform, copy.place);
  const slow = await networkWarning(platform, copy.place);
  if (slow !== null) workspace.warnings.push(slow);
  const createdCopy = await copy.ensure();
  let head = await remote.fetchBranch();
  const createdBranch = head === null && (await createBranch(open, workspace, author));
  head ??= await remote.attach();
  if (createdCopy || createdBranch) await provePrefix(open, workspace, author);
  // Who holds what by now is known from the beginning.
  await remote.look("all");
  await open.state.update((state) => ({
    ...state,
    lastPullAt: new Date(platform.clock.wallMs()).toISOString(),
    ledgerHead: head,
    isValid: true,
  }));
  await remote.settle();
  await join(workspace, open);
  return { createdBranch, createdCopy, head };
}

/** Git fetches from a shallow clone what it believes to be there, and what it lacks may be missing when it is needed. */
async function refuseShallow({ surroundings, repository }: Workspace): Promise<void> {
  const path = `${repository.commonDir}/shallow`;
  if ((await surroundings.platform.files.stat(path)) === null) return;
  throw new CotenantError("E_GIT", "this is a shallow clone: the ledger needs a whole one", {
    hint: "run 'git fetch --unshallow', then set the ledger up again",
    data: { path },
  });
}

/** False when somebody else was faster: then it is theirs that counts. */
async function createBranch(
  { copy, remote }: OpenLedger,
  workspace: Workspace,
  author: string,
): Promise<boolean> {
  const files = await committedFiles(workspace);
  files.set(TOKENS_PATH, encodeTokens(0));
  const message = `Begin the ledger\n\nClaims and issues of all machines. Written by cotenant; see docs/LEDGER.md there.\n`;
  const commit = await commitFiles(copy, { parent: null, files, message, author });
  const ref = `refs/heads/${remote.branch}`;
  const answer = await remote.send([`--force-with-lease=${ref}:`], [`${commit}:${ref}`]);
  const outcome = answer.of(ref, commit);
  if (outcome.kind === "done") return true;
  if ((await remote.fetchBranch()) !== null) return false;
  throw gitError(
    `${copy.transport.remote} does not take the branch ${remote.branch}: ${outcome.why}`,
    "look at what the remote allows you to push, or choose another name: sync.ledger_branch",
    { remote: copy.transport.remote, branch: remote.branch },
  );
}

/** `.cotenant/` as HEAD has it; nothing where there is none. */
async function committedFiles({ surroundings, repository }: Workspace): Promise<Map<string, Uint8Array>> {
  const cwd = repository.worktreeRoot;
  const { git } = surroundings;
  const listed = await git.run(["ls-tree", "-r", "-z", "--full-tree", "HEAD", "--", ".cotenant"], { cwd });
  const tree =
    listed.status === 0 ? parseTree(new TextDecoder().decode(listed.stdout)) : new Map<string, string>();
  const wanted = [...tree].filter(([path]) => isFitName(path));
  const blobs = await blobsOf(
    async (args, input) => (await git.run(args, { cwd, input, timeoutMs: 60_000 })).stdout,
    [...new Set(wanted.map(([, oid]) => oid))],
  );
  const files = new Map<string, Uint8Array>();
  for (const [path, oid] of wanted) {
    const bytes = blobs.get(oid);
    if (bytes !== undefined) files.set(path, bytes);
  }
  return files;
}

/** PROTOCOL 26: refs that cannot be seen would all look free. Create one, list it, delete it. */
async function provePrefix(
  { copy, remote, prefix }: OpenLedger,
  workspace: Workspace,
  author: string,
): Promise<void> {
  const ref = `${prefix}probe-${newUlid(workspace.surroundings.platform)}`;
  const commit = await commitFiles(copy, { parent: null, files: new Map(), message: "Probe\n", author });
  const created = (await remote.send([`--force-with-lease=${ref}:`], [`${commit}:${ref}`])).of(ref, commit);
  const listed =
    created.kind === "done"
      ? await copy.talk(["ls-remote", "--refs", "--end-of-options", copy.transport.remote, ref])
      : null;
  const isListed = listed !== null && new TextDecoder().decode(listed.stdout).includes(ref);
  if (created.kind !== "done" || !isListed) {
    const why = created.kind === "done" ? "it takes refs there, and does not show them" : created.why;
    throw policyError(
      `${copy.transport.remote} cannot keep claims under ${prefix}: ${printable(why, 200)}`,
      "some hosts allow branches only: set sync.claims_prefix = refs/heads/cotenant-claims/",
      { prefix, setting: "sync.claims_prefix" },
    );
  }
  const deleted = (await remote.send([`--force-with-lease=${ref}:${commit}`], [`:${ref}`])).of(ref, commit);
  if (deleted.kind !== "done")
    workspace.warnings.push(`${copy.transport.remote} does not delete refs: ${ref} stays, and harms nobody`);
}
