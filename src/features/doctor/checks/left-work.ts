import { readWorktreeIdentity } from "../../../identity/worktree";
import { printable } from "../../../kernel/ids";
import { issuesAt } from "../../issues/desk";
import { elsewhereIn, workersAmong } from "../../issues/effective";
import { queryAbandoned } from "../../issues/query";
import { readCloneId } from "../../ledger/clone-id";
import { LedgerCopy } from "../../ledger/copy";
import { GitRemote } from "../../ledger/git-remote";
import { ledgerPlace } from "../../ledger/place";
import { rulesOf } from "../../ledger/rules";
import { transportOf } from "../../ledger/transport";
import { heardOf } from "../../ledger/view";
import { type AbandonedWork, abandonedWork } from "../../snapshots/abandoned-work";
import { type Check, capped, note, ok } from "../finding";
import type { Patient } from "../patient";

/** Issues whose holder went away without a release: free to take, and their changes may lie about. */
export const leftWorkCheck: Check = {
  name: "left-work",
  async look(patient) {
    const { platform, repository, coordinator, place, hasStore } = patient;
    if (!hasStore) return [];
    const { git } = place;
    const identity = await readWorktreeIdentity(platform, git, repository).catch(() => null);
    const worktreeId = identity?.identity.worktreeId ?? null;
    const reader = issuesAt({ platform, git, repository, coordinator, worktreeId }, null);
    const elsewhere = elsewhereIn(await heard(patient));
    const workers = await workersAmong(coordinator, await patient.leases(), elsewhere);
    const { issues } = await queryAbandoned({ reader, hierarchy: [], ...workers });
    const left = await abandonedWork({ platform, git, repository, coordinator }, reader, workers, issues);
    const found = issues.map(({ id, shortId, title }) =>
      note(
        `issue ${shortId} "${printable(title, 80)}" was left by ${placeWords(left.get(id)!)}`,
        `take it over: cotenant claim acquire ${shortId}`,
        { id, worktree_id: left.get(id)!.worktreeId },
      ),
    );
    return found.length === 0 ? [ok("nobody has left an issue half done")] : capped(found);
  },
};

function placeWords({ agentId, at, root, snapshotId, branch }: AbandonedWork): string {
  const where =
    root ??
    (snapshotId !== null
      ? `snapshot ${snapshotId}`
      : branch !== null
        ? `branch ${branch}`
        : "no known place");
  return `${agentId || "somebody"} at ${printable(at, 40)}, with its changes in ${printable(where, 500)}`;
}

/** What this machine's copy of the ledger says of others; null where there is none, or it cannot be read. */
async function heard({ place, platform, repository, config, coordinator }: Patient) {
  const { values } = config;
  const branch = values["sync.ledger_branch"];
  if (branch === null) return null;
  try {
    const root = repository.worktreeRoot;
    const { env, home, git } = place;
    const transport = await transportOf(git, { root, env, remote: values["sync.remote"] ?? "origin" });
    const override = values["sync.global_path_override"];
    const where = await ledgerPlace({ platform, env, home, override, url: transport.url, root });
    const copy = new LedgerCopy(platform, git, where, transport, {
      objectFormat: repository.config.objectFormat,
      timeoutMs: values["sync.network_timeout"] * 1000,
    });
    const prefix = values["sync.claims_prefix"] ?? "refs/cotenant/claims/";
    const seen = await new GitRemote(copy, { prefix, branch }).seen("all");
    const cloneId = await readCloneId(platform, coordinator, repository.controlDir);
    return heardOf(seen, cloneId, platform.clock.wallMs(), rulesOf(values));
  } catch {
    // What is wrong with the ledger is another check's to say.
    return null;
  }
}
