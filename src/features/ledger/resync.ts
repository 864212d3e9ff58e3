import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { Actor } from "../../kernel/commands";
import { writeNew } from "../../platform/write-new";
import { recordAt } from "./claim-attempt";
import { removeTree } from "./copy";
import type { Ledger } from "./ledger";
import { leave } from "./membership";
import type { OpenLedger } from "./open";
import type { RemoteClaims } from "./remote";
import { FRESH } from "./state";

interface Backup {
  readonly path: string;
}

/** Everything that this machine knows of the ledger, put where nothing touches it: a bundle of all refs, and the state. */
async function backUp({ copy }: Pick<OpenLedger, "copy">): Promise<Backup | null> {
  const { files, clock } = copy.platform;
  if (!(await copy.exists())) return null;
  const time = new Date(clock.wallMs()).toISOString().replace(/[:.]/g, "-");
  const path = `${copy.place.backups}/${time}`;
  for (const directory of [copy.place.backups, path]) await files.makeDirectory(directory, 0o700);
  const { status, stderr } = await copy.run([
    "bundle",
    "create",
    "--quiet",
    `${path}/ledger.bundle`,
    "--all",
  ]);
  // A copy without anything in it has nothing to lose.
  if (status !== 0 && !/empty bundle/i.test(stderr)) await keepFiles(copy, path);
  const state = await files.readFile(copy.place.state);
  if (state !== null) await writeNew(files, `${path}/state.json`, state, 0o600, (fd) => files.sync(fd));
  await files.syncDirectory(path);
  return { path };
}

/** A copy that Git cannot read any more is kept as it is. */
async function keepFiles(copy: OpenLedger["copy"], path: string): Promise<void> {
  await copy.platform.files.rename(copy.place.copy, `${path}/ledger.git`);
  await copy.ensure();
}

export interface Resynced {
  readonly backup: string | null;
  readonly head: string;
  /** Claims at the remote now. */
  readonly claims: number;
}

/**
 * Takes the remote's ledger for what it is now, whatever was seen of it before. What this machine knew is backed up first;
 * tokens go on rising, because this clone's own counter knows the highest it has heard of.
 */
export async function forceResync(open: OpenLedger, actor: Actor): Promise<Resynced> {
  const { copy, remote, ledger } = open;
  await copy.ensure();
  // Asked first: where the remote cannot be reached, nothing may be thrown away.
  await remote.bring([`+refs/heads/${remote.branch}*:refs/look/resync/branch/${remote.branch}*`]);
  const backup = await backUp(open);
  const token = await remote.highestToken(await ledger.parts.local.highestToken());
  await ledger.raiseFloor(actor, token, {});
  const refs = await copy.text(["for-each-ref", "--format=%(refname)", "refs/seen/", "refs/look/"]);
  const gone = refs.split("\n").filter((ref) => ref !== "");
  await copy.run(["update-ref", "--stdin"], gone.map((ref) => `delete ${ref}\n`).join(""));
  const head = await remote.attach();
  const look = await remote.look("all");
  await remote.settle();
  await doubt(ledger, actor, look);
  await open.state.update((state) => ({
    ...FRESH,
    offlineClaims: state.offlineClaims,
    ledgerHead: head,
    lastPullAt: new Date(ledger.nowMs).toISOString(),
  }));
  return { backup: backup?.path ?? null, head, claims: look.claims.size };
}

/** Claims of this clone that are not there, or not this clone's, are provisional until the next contact. */
async function doubt(ledger: Ledger, actor: Actor, look: RemoteClaims): Promise<void> {
  const known = await ledger.confirmations("all");
  const lost = [...known.values()].filter(
    ({ issueId, leaseId, state }) =>
      state === "confirmed" && recordAt(look.claims.get(issueId))?.leaseId !== leaseId,
  );
  await ledger.rememberAs(
    actor,
    lost.map((confirmation) => ({ ...confirmation, state: "unsettled" as const })),
  );
}

/**
 * Removes this machine's copy and state, and takes this clone out of the ledger. The remote keeps it, and other machines keep
 * theirs.
 */
export async function cleanUp(
  open: OpenLedger,
  workspace: Workspace,
): Promise<{ backup: string | null; removed: boolean }> {
  await leave(workspace);
  const { copy } = open;
  const { files } = copy.platform;
  if ((await files.stat(copy.place.directory)) === null) return { backup: null, removed: false };
  const backup = await backUp(open);
  const isThere = (await files.lstat(copy.place.copy)) !== null;
  await copy.underLock(async () => {
    await removeTree(copy.platform, copy.place.copy);
    await files.unlink(copy.place.state);
  });
  return { backup: backup?.path ?? null, removed: isThere };
}

export function needsYes(what: string, means: string): CotenantError {
  return new CotenantError("E_POLICY", `${what} needs --yes: ${means}`, {
    hint: "run it again with --yes when that is what you want; a backup is made first",
  });
}
