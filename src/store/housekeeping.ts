import { during } from "../errors/cotenant-error";
import { writeNew } from "../platform/write-new";
import type { LogActor } from "./envelope";
import { MEMORY_MS } from "./replay";
import type { Store } from "./store";
import { DamagedIndex } from "./tree-files";

export interface TidyOptions {
  readonly compact: boolean;
  /** The flat view, for people; nothing reads it. */
  readonly flatIndex: Readonly<Record<string, unknown>>;
}

export interface TidyReport {
  readonly packed: readonly string[];
  readonly compacted: boolean;
}

/** What `gc` does beyond logging the end of lapsed leases. */
export async function tidy(store: Store, actor: LogActor, options: TidyOptions): Promise<TidyReport> {
  return during("tidying the store", store.layout.root, async () => {
    await store.hold(actor, async () => {
      const ground = await store.keeper.stand(actor);
      if (options.compact) await store.keeper.rotate(ground, actor);
      await prune(store, actor);
      await store.queue.sweep();
    });
    const packed = await oneAtATime(store, async () => {
      const names = await packArchive(store);
      await writeFlatIndex(store, options.flatIndex);
      return names;
    });
    return { packed: packed ?? [], compacted: options.compact };
  });
}

async function prune(store: Store, actor: LogActor): Promise<void> {
  try {
    await store.index.prune(store.platform.clock.wallMs() - MEMORY_MS);
  } catch (error) {
    if (!(error instanceof DamagedIndex)) throw error;
    // A rebuilt one has nothing to prune. The ground may be another one by now, if the log was compacted.
    await store.keeper.standAnew(await store.keeper.stand(actor));
  }
}

/**
 * Two who tidy at once would take each other's unfinished files for their own. Whoever comes second leaves it
 * to the first: null.
 */
async function oneAtATime<T>(store: Store, body: () => Promise<T>): Promise<T | null> {
  const { files, locks } = store.platform;
  const fd = await files.open(store.layout.tidying, "update-or-create", store.options.modes.file);
  try {
    return (await locks.tryLock(fd)) ? await body() : null;
  } finally {
    await files.close(fd);
  }
}

/** Outside the mutex: archived segments never change, and a reader takes either form. */
async function packArchive(store: Store): Promise<string[]> {
  const { files, compression } = store.platform;
  const { archive } = store.layout;
  const packed: string[] = [];
  for (const name of ((await files.readDirectory(archive)) ?? []).sort()) {
    if (!/^claims-\d{6}\.jsonl$/.test(name)) continue;
    const bytes = await files.readFile(`${archive}/${name}`);
    if (bytes === null) continue;
    await writeWhole(store, `${archive}/${name}.gz`, await compression.pack(bytes));
    await files.syncDirectory(archive);
    await files.unlink(`${archive}/${name}`);
    packed.push(`${name}.gz`);
  }
  return packed;
}

async function writeFlatIndex(store: Store, content: Readonly<Record<string, unknown>>): Promise<void> {
  const document = {
    schema_version: 1,
    generated_at: new Date(store.platform.clock.wallMs()).toISOString(),
    ...content,
  };
  await writeWhole(store, store.layout.flatIndex, `${JSON.stringify(document, null, 2)}\n`);
}

async function writeWhole(store: Store, path: string, content: string | Uint8Array): Promise<void> {
  const { files } = store.platform;
  await files.unlink(`${path}.new`);
  await writeNew(files, `${path}.new`, content, store.options.modes.file, (fd) => files.sync(fd));
  await files.rename(`${path}.new`, path);
}
