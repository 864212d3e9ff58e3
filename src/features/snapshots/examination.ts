import type { Coordinator } from "../../coordinator/contract";
import { CotenantError } from "../../errors/cotenant-error";
import { ObjectDatabase } from "../../git/database";
import { isTree, MODES } from "../../git/tree";
import { decode } from "../../identity/path-text";
import type { ProcessIdentity } from "../../platform/platform";
import { partial, readContents } from "./contents";
import type { Descriptor } from "./descriptor";
import type { DescriptorStore, StoredDescriptor } from "./descriptor-store";
import { openIntents, type SnapshotIntent } from "./intents";
import type { TreePlace } from "./listing";
import { KEEP_MARK } from "./object-sink";
import { objectPlace, type SnapshotMachine } from "./snapshot-context";

/** What is wrong with the snapshots of a repository, or good to know. */
export type Ailment =
  /** Its maker died before it was ready: nobody sees it. */
  | { readonly what: "unfinished"; readonly id: string; readonly intent: SnapshotIntent }
  /** Somebody is at it. */
  | { readonly what: "underway"; readonly id: string; readonly intent: SnapshotIntent }
  /** Its maker died after it was ready: everybody sees it, and the log does not know. */
  | { readonly what: "unlogged"; readonly id: string; readonly descriptor: Descriptor }
  /** Something is left of one that was taken away. */
  | { readonly what: "remains"; readonly id: string }
  /** Everybody saw it, nobody took it away, and nobody sees it any more. */
  | { readonly what: "lost"; readonly id: string }
  /** What became of such a one. */
  | { readonly what: "aside"; readonly id: string }
  | { readonly what: "damaged"; readonly id: string; readonly why: string }
  /** The ref that keeps its objects alive is gone. */
  | { readonly what: "unkept"; readonly id: string; readonly commit: string }
  /** A ref without a descriptor. */
  | { readonly what: "unknown"; readonly id: string }
  /** A pack that is marked as not to be touched, for nothing. */
  | { readonly what: "marked"; readonly id: string; readonly path: string };

export interface Examined {
  readonly descriptors: DescriptorStore;
  readonly coordinator: Pick<Coordinator, "facts">;
  readonly machine: SnapshotMachine;
  readonly place: TreePlace;
}

/** All that can be seen without reading objects. Writes nothing, takes no lock. */
export async function examine(
  at: Omit<Examined, "machine"> & { readonly machine: Pick<SnapshotMachine, "platform"> },
) {
  const { descriptors, coordinator, machine } = at;
  const intents = new Map((await openIntents(coordinator)).map((intent) => [intent.snapshotId, intent]));
  const shelved = await descriptors.everything();
  const ailments: Ailment[] = [];
  for (const one of shelved) ailments.push(...(await ofShelved(at.machine, one, intents.get(one.id))));
  const known = new Set(shelved.map(({ id }) => id));
  for (const id of await descriptors.asides()) ailments.push({ what: "aside", id });
  for (const [id, intent] of intents)
    if (!known.has(id)) ailments.push(await unfinished(machine, id, intent));
  return { ailments, shelved, intents };
}

async function ofShelved(
  machine: Pick<SnapshotMachine, "platform">,
  { id, isReady, isLost, isSealed, descriptor }: StoredDescriptor,
  intent: SnapshotIntent | undefined,
): Promise<Ailment[]> {
  // While one is under way nobody has seen it yet.
  if (!isReady && intent !== undefined) return [await unfinished(machine, id, intent)];
  if (!isReady) return [{ what: isLost ? "lost" : "remains", id }];
  if (descriptor === null) return [{ what: "damaged", id, why: "its descriptor cannot be read" }];
  if (!isSealed) return [{ what: "damaged", id, why: "its descriptor is not the one that was made ready" }];
  if (intent === undefined || !(await isDead(machine, intent.maker))) return [];
  return [{ what: "unlogged", id, descriptor }];
}

async function unfinished(
  machine: Pick<SnapshotMachine, "platform">,
  id: string,
  intent: SnapshotIntent,
): Promise<Ailment> {
  return { what: (await isDead(machine, intent.maker)) ? "unfinished" : "underway", id, intent };
}

export async function isDead(
  { platform }: Pick<SnapshotMachine, "platform">,
  maker: ProcessIdentity,
): Promise<boolean> {
  return (await platform.processes.liveness(maker)) === "dead";
}

/** All that may hold something that exists nowhere else: what everybody sees, and what has lost its mark. */
export async function keptIds(at: Parameters<typeof examine>[0]): Promise<string[]> {
  const { ailments, shelved } = await examine(at);
  const lost = ailments.filter(({ what }) => what === "lost" || what === "aside");
  return [...shelved.filter(({ isReady }) => isReady), ...lost].map(({ id }) => id);
}

/** The same, and every object of every snapshot read and compared with its name and its digest. */
export async function examineStrictly(at: Examined, onSnapshot: (id: string) => void = () => {}) {
  const { machine, place } = at;
  const { ailments, shelved, intents } = await examine(at);
  const refs = await refsNow(at);
  const checked = new Set<string>();
  for (const { id, isReady, isSealed, descriptor } of shelved) {
    if (!isReady || !isSealed || descriptor === null) continue;
    onSnapshot(id);
    if (refs.get(id) !== descriptor.commit) ailments.push({ what: "unkept", id, commit: descriptor.commit });
    const why = await whatIsWrong(machine, place, descriptor, checked);
    if (why !== null) ailments.push({ what: "damaged", id, why });
  }
  const known = new Set([...shelved, ...ailments].map(({ id }) => id));
  for (const id of refs.keys())
    if (!intents.has(id) && !known.has(id)) ailments.push({ what: "unknown", id });
  for (const { id, path } of await markedPacks(at)) {
    const intent = intents.get(id);
    if (intent === undefined || (await isDead(machine, intent.maker)))
      ailments.push({ what: "marked", id, path });
  }
  return { ailments, count: shelved.filter(({ isReady }) => isReady).length };
}

async function refsNow({ machine, place }: Examined): Promise<Map<string, string>> {
  const { stdout } = await machine.git.run(
    ["for-each-ref", "--format=%(objectname) %(refname:lstrip=3)", "refs/cotenant/snapshots/"],
    { cwd: place.commonDir },
  );
  const lines = decode(stdout).split("\n").filter(Boolean);
  return new Map(lines.map((line) => [line.slice(line.indexOf(" ") + 1), line.slice(0, line.indexOf(" "))]));
}

async function whatIsWrong(
  machine: SnapshotMachine,
  place: TreePlace,
  descriptor: Descriptor,
  checked: Set<string>,
): Promise<string | null> {
  const database = new ObjectDatabase(machine.platform, machine.git, objectPlace(machine, place));
  const check = async (oid: string, type: "blob" | "tree") => {
    if (checked.has(oid)) return;
    const seen = await database.check(oid);
    if (seen?.type !== type) throw partial(descriptor, `object ${oid} is missing`);
    if (!seen.isSound) throw partial(descriptor, `object ${oid} is not what its name says`);
    checked.add(oid);
  };
  const checkTree = async (tree: string): Promise<void> => {
    if (checked.has(tree)) return;
    await check(tree, "tree");
    for (const entry of await database.readTree(tree)) {
      if (isTree(entry)) await checkTree(entry.oid);
      else if (entry.mode !== MODES.submodule) await check(entry.oid, "blob");
    }
  };
  try {
    const { files } = await readContents(machine, place, descriptor);
    for (const { oid, kind } of files) if (kind !== "repository") await check(oid, "blob");
    const { index, stages, skipped } = descriptor;
    for (const tree of [index, stages]) if (tree !== null) await checkTree(tree);
    if (skipped !== null) await check(skipped, "blob");
    return null;
  } catch (error) {
    // Whoever reports it says which snapshot it is.
    if (error instanceof CotenantError) return String(error.data["why"] ?? error.message);
    throw error;
  } finally {
    await database.close();
  }
}

/** Packs of ours that no clearing up may touch. */
export async function markedPacks({
  machine,
  place,
}: Pick<Examined, "machine" | "place">): Promise<{ readonly id: string; readonly path: string }[]> {
  const { files } = machine.platform;
  const directory = `${place.commonDir}/objects/pack`;
  const found: { id: string; path: string }[] = [];
  for (const name of (await files.readDirectory(directory)) ?? []) {
    if (!name.endsWith(".keep")) continue;
    const bytes = await files.readFile(`${directory}/${name}`);
    const text = bytes === null ? "" : decode(bytes).trim();
    if (text.startsWith(KEEP_MARK))
      found.push({ id: text.slice(KEEP_MARK.length), path: `${directory}/${name}` });
  }
  return found;
}
