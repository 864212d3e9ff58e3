import { fileFailure } from "../../../errors/cotenant-error";
import { explainSandbox } from "../../../identity/sandbox";
import type { FileStat } from "../../../platform/platform";
import { type Check, capped, error, fromError, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";
import { treeBelow } from "../tree";

/** Who may look into the control plane, and whether we may write there. */
export const permissionsCheck: Check = {
  name: "permissions",
  async look(patient) {
    const { layout, repository, hasStore, platform } = patient;
    if (!hasStore) return writable(patient, `${repository.commonDir}/config`, repository.commonDir);
    const found: Reported[] = [];
    // A log or a lock file that cannot be opened for writing says more than any mode.
    for (const path of [layout.mutex, layout.log]) {
      // One word on a directory that is read-only as a whole is enough.
      const isTold = found.some(({ data }) => data["writable"] !== undefined);
      if (!isTold && (await platform.files.stat(path)) !== null)
        found.push(...(await writable(patient, path, path)).filter(({ level }) => level !== "ok"));
    }
    found.push(...(await openTo(patient)));
    return found.length === 0 ? [ok("the control plane is private and can be written")] : found;
  },
};

/** Opened for writing and closed again: nothing is written. */
async function writable(patient: Patient, path: string, shown: string): Promise<Reported[]> {
  const { platform, place, repository } = patient;
  const { files } = platform;
  try {
    if ((await files.stat(path)) === null) return [ok("there is no control plane yet")];
    await files.close(await files.open(path, "update"));
    return [ok(`${shown} can be written`)];
  } catch (failure) {
    const known = fileFailure(failure, "writing there", shown);
    const told = await explainSandbox(known, { platform, env: place.env }, repository);
    const { message, data, next } = fromError(told, "writing there", shown);
    const code = data["code"];
    if (code !== "E_PERMISSION" && data["errno"] !== "EROFS")
      return [fromError(told, "writing there", shown)];
    const meaning = "commands that only look still work; commands that change a lease do not";
    return [error(code as "E_PERMISSION", `${message}; ${meaning}`, next!, data)];
  }
}

async function openTo({ platform, layout, modes }: Patient): Promise<Reported[]> {
  const { user } = platform.processes.self();
  const { entries, unreadable } = await treeBelow(platform.files, layout.root, isWalked(layout.index));
  const found: Reported[] = [];
  for (const { path, stat } of entries) {
    const isSecret = path.startsWith(`${layout.secrets}/`);
    const allowed = isSecret ? { file: 0o600, directory: 0o700 } : modes;
    found.push(
      ...tooOpen(path, stat, stat.kind === "directory" ? allowed.directory : allowed.file, isSecret),
    );
    if (isForeign(stat, user) && (modes.directory & 0o070) === 0) found.push(foreign(path, stat, user));
  }
  const closed = unreadable.filter((path) => !path.startsWith(`${layout.secrets}/`));
  found.push(...closed.map((path) => unreadableDirectory(path)));
  return capped(found);
}

/** The trees of the index have as many entries as there are leases, and all were made by the same few lines. */
function isWalked(index: string): (path: string) => boolean {
  return (path) => !path.startsWith(`${index}/`);
}

function tooOpen(path: string, stat: FileStat, allowed: number, isSecret: boolean): Reported[] {
  // Set-group-id and sticky bits let nobody in.
  const surplus = stat.mode & 0o777 & ~allowed;
  if (surplus === 0 || stat.kind === "symlink") return [];
  const octal = (mode: number) => (mode & 0o777).toString(8).padStart(3, "0");
  const data = { path, mode: octal(stat.mode), allowed: octal(allowed) };
  const next = `run: chmod ${octal(stat.mode & allowed)} '${path}'`;
  if (isSecret && (surplus & 0o077) !== 0)
    return [
      error("E_PERMISSION", `other users can get at secrets: ${path} has mode ${data.mode}`, next, data),
    ];
  return [
    warning(
      `${path} is more open than it should be: mode ${data.mode} instead of ${data.allowed}`,
      next,
      data,
    ),
  ];
}

/** Root may do everything, and what root left behind may be in another's way. */
function isForeign(stat: FileStat, user: string): boolean {
  return /^\d+$/.test(user) && stat.uid !== Number(user);
}

function foreign(path: string, stat: FileStat, user: string): Reported {
  const data = { path, uid: stat.uid };
  const message = `${path} belongs to user ${stat.uid}, not to you (${user})`;
  if (user === "0") return note(message, null, data);
  const next = "let its owner run cotenant here, or set core.sharedRepository for a shared repository";
  return warning(message, next, data);
}

function unreadableDirectory(path: string): Reported {
  const next = "check its owner and mode; for a shared repository set core.sharedRepository";
  return error("E_PERMISSION", `${path} cannot be read`, next, { path });
}
