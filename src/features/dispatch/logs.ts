import type { Workspace } from "../../coordinator/workspace";
import { CotenantError } from "../../errors/cotenant-error";
import type { Ulid } from "../../kernel/ids";
import { overwriteFile } from "../../platform/overwrite-file";
import type { Descriptor, Platform } from "../../platform/platform";
import { modesFor } from "../../store/layout";

/** Of one attempt; what comes after it is left out, and the log says so. */
const MOST_BYTES = 64 << 20;
/** Issues whose logs are kept, the latest. */
const MOST_ISSUES = 500;

export function dispatchFolder({ store }: Pick<Workspace, "store">): string {
  return `${store.layout.root}/dispatch`;
}

function folderOf(workspace: Pick<Workspace, "store">, issueId: Ulid): string {
  return `${dispatchFolder(workspace)}/${issueId.toLowerCase()}`;
}

/** The logs of an issue's attempts, the oldest first. */
export async function logsOf(workspace: Workspace, issueId: Ulid): Promise<string[]> {
  const { files } = workspace.surroundings.platform;
  const folder = folderOf(workspace, issueId);
  const names = ((await files.readDirectory(folder)) ?? []).filter((name) => name.endsWith(".log"));
  return names.sort().map((name) => `${folder}/${name}`);
}

const PIECE_BYTES = 1 << 20;

/** What stands in a log from a byte on, and where that ends. */
export async function readLog(
  workspace: Workspace,
  path: string,
  from: number,
): Promise<{ readonly bytes: Uint8Array; readonly end: number }> {
  const { files } = workspace.surroundings.platform;
  const fd = await files.open(path, "read");
  try {
    const chunks: Uint8Array[] = [];
    let end = from;
    for (;;) {
      const chunk = await files.read(fd, end, PIECE_BYTES);
      if (chunk.length === 0) break;
      chunks.push(chunk.slice());
      end += chunk.length;
    }
    const bytes = new Uint8Array(end - from);
    let at = 0;
    for (const chunk of chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    return { bytes, end };
  } finally {
    await files.close(fd);
  }
}

/** What an agent prints, as it comes. Nothing fails because a log cannot be written. */
export class AttemptLog {
  #at = 0;
  #bytes = 0;
  #isFull = false;
  #written: Promise<void> = Promise.resolve();

  private constructor(
    private readonly files: Platform["files"],
    readonly path: string,
    private readonly fd: Descriptor,
  ) {}

  static async open(workspace: Workspace, issueId: Ulid): Promise<AttemptLog> {
    const { platform } = workspace.surroundings;
    const { files, clock } = platform;
    const modes = modesFor(workspace.repository.config.sharedRepository);
    const folder = await folderFor(workspace, issueId);
    // Names sort by time, and two of one millisecond differ all the same.
    for (let nth = 0; ; nth++) {
      const stamp = new Date(clock.wallMs() + nth).toISOString().replace(/[:.]/g, "-");
      const path = `${folder}/${stamp}.log`;
      if ((await files.stat(path)) !== null) continue;
      return new AttemptLog(files, path, await files.open(path, "create", modes.file));
    }
  }

  add(chunk: Uint8Array): void {
    if (this.#isFull) return;
    this.#isFull = this.#bytes + chunk.length > MOST_BYTES;
    const bytes = this.#isFull ? new TextEncoder().encode("\n[cotenant: the log is full]\n") : chunk.slice();
    this.#bytes += bytes.length;
    this.#written = this.#written.then(() => this.#write(bytes));
  }

  async #write(bytes: Uint8Array): Promise<void> {
    try {
      for (let done = 0; done < bytes.length; ) {
        const wrote = await this.files.writeAt(this.fd, bytes.subarray(done), this.#at);
        done += wrote;
        this.#at += wrote;
      }
    } catch {
      this.#isFull = true;
    }
  }

  line(text: string): void {
    this.add(new TextEncoder().encode(`[cotenant: ${text}]\n`));
  }

  async close(): Promise<void> {
    await this.#written;
    try {
      await this.files.close(this.fd);
    } catch {
      // What was written is written.
    }
  }
}

async function folderFor(workspace: Workspace, issueId: Ulid): Promise<string> {
  const { files } = workspace.surroundings.platform;
  const modes = modesFor(workspace.repository.config.sharedRepository);
  const folder = folderOf(workspace, issueId);
  await files.makeDirectory(dispatchFolder(workspace), modes.directory);
  await files.makeDirectory(folder, modes.directory);
  return folder;
}

/** The task in words, where the agent finds it. */
export async function writePrompt(workspace: Workspace, issueId: Ulid, text: string): Promise<string> {
  const { files } = workspace.surroundings.platform;
  const modes = modesFor(workspace.repository.config.sharedRepository);
  const path = `${await folderFor(workspace, issueId)}/prompt.md`;
  await overwriteFile(files, path, text, modes.file);
  return path;
}

/** Logs of issues that nobody has worked on for longest; their number has a limit. Nothing depends on it. */
export async function tidyLogs(workspace: Workspace): Promise<void> {
  const { files } = workspace.surroundings.platform;
  const folder = dispatchFolder(workspace);
  const names = ((await files.readDirectory(folder)) ?? []).filter((name) => /^[0-9a-z]{26}$/.test(name));
  if (names.length <= MOST_ISSUES) return;
  const aged: { name: string; at: string }[] = [];
  for (const name of names) {
    const inside = ((await files.readDirectory(`${folder}/${name}`)) ?? []).filter((one) =>
      one.endsWith(".log"),
    );
    aged.push({ name, at: inside.sort().at(-1) ?? "" });
  }
  aged.sort((a, b) => (a.at < b.at ? -1 : 1));
  for (const { name } of aged.slice(0, names.length - MOST_ISSUES)) {
    for (const inside of (await files.readDirectory(`${folder}/${name}`)) ?? [])
      await files.unlink(`${folder}/${name}/${inside}`);
    await files.removeDirectory(`${folder}/${name}`);
  }
}

export function noLogs(issueId: Ulid): CotenantError {
  return new CotenantError("E_NOT_FOUND", `no worker has run for issue ${issueId} here`, {
    hint: "see what was worked on: cotenant dispatch status",
    data: { id: issueId },
  });
}
