import { readWorktreeIdentity } from "../../../identity/worktree";
import { printable } from "../../../kernel/ids";
import { count, some } from "../../../kernel/printing";
import type { LastingGit } from "../../../platform/git";
import type { ProcessIdentity } from "../../../platform/platform";
import type { Trees } from "../../../platform/trees";
import { issuesAt } from "../../issues/desk";
import { elsewhereIn, workersAmong } from "../../issues/effective";
import { queryAbandoned } from "../../issues/query";
import { openMoves } from "../../land/checkout";
import { readCloneId } from "../../ledger/clone-id";
import { LedgerCopy } from "../../ledger/copy";
import { GitRemote } from "../../ledger/git-remote";
import { ledgerPlace } from "../../ledger/place";
import { rulesOf } from "../../ledger/rules";
import { transportOf } from "../../ledger/transport";
import { heardOf } from "../../ledger/view";
import { isOver, openIntents } from "../../publish/settlement";
import { type AbandonedWork, abandonedWork } from "../../snapshots/abandoned-work";
import { DescriptorStore } from "../../snapshots/descriptor-store";
import { type Ailment, examine, examineStrictly } from "../../snapshots/examination";
import { RESTORING } from "../../snapshots/inplace";
import { makings } from "../../worktrees/records";
import { removals } from "../../worktrees/removal";
import { type Check, capped, error, note, ok, type Reported, warning } from "../finding";
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

const REPAIR = "run: cotenant doctor --strict --repair";

const LAND_AGAIN =
  "a person runs: cotenant land run (it finishes or takes back what was begun, and clears Git's index.lock)";

/** Worktrees that somebody was making, removing or restoring. */
export const unfinishedCheck: Check = {
  name: "unfinished",
  async look(patient) {
    const { coordinator } = patient;
    const found: Reported[] = [];
    for (const { place, maker } of await makings(coordinator))
      found.push(await told(patient, maker, `the worktree ${place} is being made`, { root: place }));
    for (const { root, maker } of await removals(coordinator))
      found.push(await told(patient, maker, `the worktree ${root} is being removed`, { root }));
    for (const { value } of (await coordinator.facts({ kinds: [RESTORING] })).values()) {
      const { maker, before, snapshot_id: id } = value;
      const words = `snapshot ${String(id)} is being restored in place (what was there is snapshot ${String(before)})`;
      found.push(await told(patient, maker as ProcessIdentity, words, { snapshot_id: id, before }));
    }
    for (const { root, lander, ref, new: next } of await openMoves(coordinator)) {
      const words = `the files of ${root} are moving along with ${ref}`;
      found.push(await told(patient, lander, words, { root, ref, commit: next }, LAND_AGAIN));
    }
    return found.length === 0 ? [ok("nothing is half done")] : found;
  },
};

async function told(
  { platform }: Patient,
  maker: ProcessIdentity,
  words: string,
  data: Readonly<Record<string, unknown>>,
  next = `${REPAIR} (any 'worktree create' settles it, too)`,
): Promise<Reported> {
  const isDead = (await platform.processes.liveness(maker)) === "dead";
  return isDead ? warning(`${words}, and its process has died`, next, data) : note(words, null, data);
}

/** Publishes that were begun and have no end yet, and what they have left behind. */
export const publishingCheck: Check = {
  name: "publishing",
  async look({ platform, coordinator, repository, layout, hasStore }) {
    if (!hasStore) return [ok("nothing was published yet")];
    const found: Reported[] = [];
    for (const intent of await openIntents({ coordinator })) {
      if (!(await isOver({ surroundings: { platform } }, intent))) continue;
      const lock = `${repository.commonDir}/${intent.ref}.lock`;
      const isLocked = (await platform.files.lstat(lock)) !== null;
      const data = {
        publish_id: intent.publishId,
        agent_id: intent.agentId,
        ref: intent.ref,
        commit: intent.new,
      };
      found.push(
        warning(
          `a publish of ${intent.agentId} to ${printable(intent.ref, 200)} was cut off${isLocked ? ", and Git's lock is still there" : ""}`,
          "the next command that writes settles it: cotenant gc",
          data,
        ),
      );
    }
    const young = platform.clock.wallMs() - YOUNG_MS;
    const left: string[] = [];
    for (const name of (await platform.files.readDirectory(layout.agentIndex)) ?? [])
      if (((await platform.files.lstat(`${layout.agentIndex}/${name}`))?.mtimeMs ?? young) < young)
        left.push(name);
    if (left.length > 0)
      found.push(
        note(
          `${count(left.length, "index", "indexes")} of publishes that were cut off: ${some(left)}`,
          "run: cotenant gc",
        ),
      );
    return found.length === 0 ? [ok("nothing is left open")] : found;
  },
};

/** A younger one may belong to somebody at work. */
const YOUNG_MS = 3_600_000;

/** What can be seen without reading objects. */
export const snapshotsCheck: Check = {
  name: "snapshots",
  async look(patient) {
    const { ailments, shelved } = await examine(examined(patient));
    const found = ailments.map((ailment) => reported(ailment, false));
    const ready = shelved.filter(({ isReady }) => isReady);
    return found.length === 0 ? [ok(count(ready.length, "snapshot"))] : capped(found);
  },
};

/** Every object of every snapshot. */
export function strictSnapshotsCheck({
  git,
  trees,
}: {
  readonly git: LastingGit;
  readonly trees: Trees;
}): Check {
  return {
    name: "snapshots",
    async look(patient) {
      const { platform, repository } = patient;
      const machine = {
        platform,
        git,
        trees,
        format: repository.config.objectFormat,
        refFormat: repository.config.refFormat,
      };
      const { ailments, count: ready } = await examineStrictly({ ...examined(patient), machine });
      const found = ailments.map((ailment) => reported(ailment, true));
      return found.length === 0
        ? [ok(`${count(ready, "snapshot")}, each with all that it holds`)]
        : capped(found);
    },
  };
}

function examined({ platform, repository, modes, coordinator }: Patient) {
  const { worktreeRoot: root, gitDir, commonDir, controlDir } = repository;
  return {
    descriptors: new DescriptorStore(platform, controlDir, modes),
    coordinator,
    machine: { platform },
    place: { root, gitDir, commonDir },
  };
}

function reported(ailment: Ailment, isStrict: boolean): Reported {
  const { what, id } = ailment;
  const data = { snapshot_id: id, problem: what };
  const broken = (message: string, next: string) =>
    isStrict ? error("E_PARTIAL_SNAPSHOT", message, next, data) : warning(message, next, data);
  switch (what) {
    case "unfinished":
      return broken(
        `snapshot ${id} by ${ailment.intent.agentId} was not finished: its process died, and nobody sees it`,
        REPAIR,
      );
    case "underway":
      return note(`snapshot ${id} is being taken by ${ailment.intent.agentId}`, null, data);
    case "unlogged":
      return broken(`snapshot ${id} is ready, and the log does not say so: its process died`, REPAIR);
    case "remains":
      return broken(`something is left of snapshot ${id}, which was taken away`, REPAIR);
    case "lost":
      return broken(
        `snapshot ${id} was visible, and its .READY is gone: nobody sees it any more`,
        `${REPAIR} (it sets it aside, with all that it holds)`,
      );
    case "aside":
      return note(
        `snapshot ${id} was set aside, because its .READY was gone`,
        `look at it with Git: git show refs/cotenant/snapshots/${id}`,
        data,
      );
    case "unkept":
      return broken(`the ref of snapshot ${id} is gone: Git may clear its objects away`, REPAIR);
    case "marked":
      return broken(`a pack is still marked as one of snapshot ${id} at work`, REPAIR);
    case "unknown":
      return warning(
        `refs/cotenant/snapshots/${id} has no descriptor here`,
        `look at it with Git: git show refs/cotenant/snapshots/${id}`,
        data,
      );
    case "damaged":
      return error(
        "E_PARTIAL_SNAPSHOT",
        `snapshot ${id} is damaged: ${ailment.why}`,
        "rely on another one; 'cotenant history --all' shows them",
        data,
      );
  }
}
