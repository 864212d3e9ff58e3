import { joinedLedgerFile, readJoinedLedger, writeJoinedLedger } from "../../config/joined-ledger";
import { WITHOUT_LEASE } from "../../coordinator/contract";
import type { Workspace } from "../../coordinator/workspace";
import type { OpenLedger } from "./open";

/** The ledger was reached: from now on this clone's claims are shared on it, whatever a branch's settings say or leave out. */
export async function join(
  workspace: Workspace,
  { branch, prefix, copy }: Pick<OpenLedger, "branch" | "prefix" | "copy">,
): Promise<void> {
  const { platform } = workspace.surroundings;
  const { controlDir } = workspace.repository;
  const { remote } = copy.transport;
  const known = await readJoinedLedger(platform, controlDir);
  if (known?.branch === branch && known.remote === remote && known.claimsPrefix === prefix) return;
  const payload = { branch, remote, claims_prefix: prefix };
  await onRecord(workspace, "sync.joined", payload, () =>
    writeJoinedLedger(platform, controlDir, { branch, remote, claimsPrefix: prefix }),
  );
}

/** Only what is configured counts from now on. */
export async function leave(workspace: Workspace): Promise<void> {
  const { files } = workspace.surroundings.platform;
  const path = joinedLedgerFile(workspace.repository.controlDir);
  if ((await files.lstat(path)) === null) return;
  await onRecord(workspace, "sync.left", {}, async () => void (await files.unlink(path)));
}

async function onRecord(
  workspace: Workspace,
  type: string,
  payload: Readonly<Record<string, unknown>>,
  carryOut: () => Promise<void>,
): Promise<void> {
  const { actor } = await workspace.session("write");
  await workspace.coordinator.write({
    actor,
    ...WITHOUT_LEASE,
    about: "the ledger",
    facts: [],
    body: async () => ({ type, payload, facts: new Map(), carryOut, answer: true }),
  });
}
