import { configFiles, userConfigDirectory } from "../../../config/load";
import type { Surroundings } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { resolveAgent } from "../../../identity/agent";
import { currentBranch } from "../../../identity/branch";
import { detectHarness } from "../../../identity/harness";
import { readWorktreeIdentity } from "../../../identity/worktree";
import { parseGitVersion } from "../../../platform/git";
import { archivedSegments } from "../../../store/segments";
import { fileSystemOf } from "../../doctor/file-system";
import { examine, type Patient } from "../../doctor/patient";
import { presenceOf } from "../../doctor/tree";
import { DescriptorStore } from "../../snapshots/descriptor-store";
import { accessOf } from "../../worktrees/access";

/** Where everything is, and who is asking. What cannot be read is null, and among the problems. */
export type Info = Awaited<ReturnType<typeof info>>;
export type StoreInfo = NonNullable<Info["store"]>;
export type SnapshotsInfo = NonNullable<Info["snapshots"]>;

/** Works also where the repository cannot be opened for work; writes nothing, and needs nobody's name. */
export async function info(
  surroundings: Surroundings,
  flags: { readonly agentId?: string | undefined; readonly session?: string | undefined } = {},
) {
  const patient = await examine(surroundings);
  const { repository, dataDirectory } = patient;
  const problems: string[] = [];
  const orNull = async <T>(act: () => Promise<T>): Promise<T | null> => {
    try {
      return await act();
    } catch (error) {
      problems.push(error instanceof CotenantError ? error.message : "something cannot be read");
      return null;
    }
  };
  const { controlDir } = repository;
  return {
    repository,
    dataDirectory,
    agent: await orNull(() => resolveAgent({ ...surroundings, controlDir, flags })),
    worktree: await orNull(() => worktreeOf(patient)),
    /** The harness that has started us. */
    harness: detectHarness(surroundings.env)?.name ?? null,
    configFiles: await configFilesOf(patient),
    /** Null also where nobody has written anything yet. */
    store: patient.hasStore ? await orNull(() => storeOf(patient)) : null,
    gitVersion: await orNull(() => gitVersion(patient)),
    fileSystem: await orNull(() => fileSystem(patient)),
    snapshots: await orNull(() => snapshotsOf(patient)),
    problems,
  };
}

async function worktreeOf({ platform, place, repository }: Patient) {
  const reading = await readWorktreeIdentity(platform, place.git, repository);
  return { ...reading, branch: await currentBranch(platform, place.git, repository.gitDir) };
}

async function configFilesOf({ question, platform }: Patient) {
  const user = userConfigDirectory(question);
  const listed: { source: string; file: string }[] = [
    ...configFiles(question),
    ...(user === null ? [] : [{ source: "agent", file: `${user}/agent.toml` }]),
  ];
  const files: { source: string; file: string; exists: boolean }[] = [];
  for (const entry of listed)
    files.push({ ...entry, exists: (await presenceOf(platform.files, entry.file)) === "there" });
  return files;
}

async function storeOf({ platform, layout, coordinator }: Patient) {
  const { files } = platform;
  const { leases, head, damage } = await coordinator.survey();
  const archived = await archivedSegments(files, layout);
  let logBytes = (await files.stat(layout.log))?.size ?? 0;
  for (const name of archived) logBytes += (await files.stat(`${layout.archive}/${name}`))?.size ?? 0;
  return {
    logBytes,
    segments: archived.length + (head.sequence === 0 ? 0 : 1),
    leases: leases.filter(({ standing }) => standing === "valid").length,
    waiters: (await coordinator.waiters()).length,
    sequence: head.sequence,
    nextToken: head.nextToken,
    damaged: damage !== null,
  };
}

async function fileSystem({ platform, repository }: Patient) {
  const { network, type } = await fileSystemOf(platform.files, repository.commonDir);
  return { name: network ?? type, network: network !== null };
}

async function gitVersion({ place, repository }: Patient): Promise<string | null> {
  const { stdout } = await place.git.run(["version"], { cwd: repository.worktreeRoot });
  return parseGitVersion(new TextDecoder().decode(stdout))?.text ?? null;
}

async function snapshotsOf({ platform, place, repository, modes, coordinator }: Patient) {
  const { worktreeId } = (await readWorktreeIdentity(platform, place.git, repository)).identity;
  const all = await new DescriptorStore(platform, repository.controlDir, modes).all();
  return {
    /** Of this worktree, oldest first. */
    own: all.filter((descriptor) => descriptor.worktree_id === worktreeId),
    all,
    access: await accessOf(coordinator, worktreeId),
  };
}
