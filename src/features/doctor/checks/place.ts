import { fileFailure } from "../../../errors/cotenant-error";
import { explainSandbox } from "../../../identity/sandbox";
import { readWorktreeIdentity } from "../../../identity/worktree";
import { listWorktrees } from "../../../identity/worktree-list";
import { count, some } from "../../../kernel/printing";
import { bootOf, elapsedMs, type Instant } from "../../../kernel/time";
import { requireRecentGit } from "../../../platform/git";
import type { FileStat } from "../../../platform/platform";
import { fileSystemOf, isNetworkAllowed } from "../file-system";
import { type Check, capped, error, fromError, note, ok, type Reported, warning } from "../finding";
import { type Patient, UNREADABLE } from "../patient";
import { treeBelow } from "../tree";
import { span, stamp } from "../words";

export const gitCheck: Check = {
  name: "git",
  async look({ place, repository }) {
    const { text } = await requireRecentGit(place.git, repository.worktreeRoot);
    return [ok(`Git ${text}`, { version: text })];
  },
};

/** Where locks cannot be trusted, neither can leases. */
export const fileSystemCheck: Check = {
  name: "file-system",
  async look({ place, platform, repository, layout, hasStore }) {
    const path = hasStore ? layout.root : repository.commonDir;
    const { network, type } = await fileSystemOf(platform.files, path);
    const data = { path, file_system: network ?? type, network: network !== null };
    if (network === null) return [ok(`local${type === null ? "" : ` (${type})`}`, data)];
    const message = `${path} is on a network or pass-through file system (${network}): its locks cannot be trusted`;
    if (await isNetworkAllowed(platform.files, layout, place.env))
      return [warning(`${message}; somebody has allowed it`, "use a clone on a local disk", data)];
    return [error("E_NETWORK_FS", message, "use a clone on a local disk", data)];
  },
};

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

const GRACE_MS = 2_000;
const FAR_MS = 60_000;
/** Nobody runs this before, and nobody runs it after. */
const SANE = { fromMs: Date.UTC(2024, 0, 1), toMs: Date.UTC(2100, 0, 1) };
const SET_IT = "set the clock (for example with NTP); leases of this boot are not affected by it";

/** Within one boot uptime decides and the wall clock only tells people; across boots there is nothing else. */
export const clockCheck: Check = {
  name: "clock",
  async look(patient) {
    const found = [...sane(patient), ...(await againstLog(patient)), ...spaces(patient)];
    return found.length === 0 ? [ok(`it is ${stamp(patient.platform.clock.wallMs())}`)] : found;
  },
};

function sane({ platform }: Patient): Reported[] {
  const nowMs = platform.clock.wallMs();
  if (nowMs >= SANE.fromMs && nowMs < SANE.toMs) return [];
  return [warning(`the clock cannot be right: it says ${stamp(nowMs)}`, SET_IT, { now: stamp(nowMs) })];
}

async function againstLog(patient: Patient): Promise<Reported[]> {
  const { newestMs, stepsBack, replay } = await patient.log();
  const now = patient.coordinator.store.now();
  const found: Reported[] = [];
  if (newestMs !== null && newestMs - now.wallMs > GRACE_MS) {
    const behind = span(newestMs - now.wallMs);
    const data = { newest_line_at: stamp(newestMs), now: stamp(now.wallMs) };
    const message = `the clock is ${behind} behind the newest line of the log (${stamp(newestMs)}): it was set back, or was ahead then`;
    found.push(warning(message, SET_IT, data));
  }
  if (stepsBack > 0)
    found.push(
      note(
        `the clock was set back ${stepsBack === 1 ? "once" : `${stepsBack} times`} while the log was written`,
        null,
        {
          steps_back: stepsBack,
        },
      ),
    );
  const instants = [...replay.leases.values()].map(({ renewedAt }) => renewedAt);
  const foreign = instants.filter(
    (at) => bootOf(at.clockId) === bootOf(now.clockId) && at.clockId !== now.clockId,
  );
  if (foreign.length > 0)
    found.push(
      note(
        `${count(foreign.length, "lease")} of another time namespace: only the wall clock says how old they are`,
        null,
        { leases: foreign.length },
      ),
    );
  return [
    ...found,
    ...drifted(
      instants,
      now,
      found.some(({ level }) => level === "warning"),
    ),
  ];
}

/** How far wall clock and uptime have come apart since a lease was renewed. */
function drifted(instants: readonly Instant[], now: Instant, isTold: boolean): Reported[] {
  const drifts = instants
    .filter(({ clockId }) => clockId === now.clockId)
    .map((instant) => now.wallMs - instant.wallMs - elapsedMs(instant, now));
  const worst = drifts.reduce((most, drift) => (Math.abs(drift) > Math.abs(most) ? drift : most), 0);
  if (Math.abs(worst) < FAR_MS || (worst < 0 && isTold)) return [];
  const data = { drift_ms: worst };
  if (worst > 0) {
    const message = `the clock has moved ${span(worst)} further than the uptime since a lease was renewed: it was set, or the machine slept`;
    return [note(message, null, data)];
  }
  return [warning(`the clock was set back by ${span(-worst)} since a lease was renewed`, SET_IT, data)];
}

/** What tells one boot, machine and namespace from another. */
function spaces({ place }: Patient): Reported[] {
  const { clock, processes } = place.platform;
  try {
    clock.clockId();
    const { machineId, pidNamespace, timeNamespace } = processes.self();
    const found: Reported[] = [];
    const hidden = [pidNamespace === UNREADABLE ? "pid" : null, timeNamespace === UNREADABLE ? "time" : null];
    for (const kind of hidden.filter((name) => name !== null))
      found.push(
        warning(
          `the ${kind} namespace cannot be read: processes of others count as alive until their leases run out`,
          "let this process read /proc/self/ns",
          { namespace: kind },
        ),
      );
    if (machineId === "")
      found.push(
        note(
          "this machine has no id: after a reboot its old leases are taken for another machine's",
          "make /etc/machine-id (systemd-machine-id-setup does)",
        ),
      );
    return found;
  } catch {
    return [
      error(
        "E_DISK",
        "the boot's id cannot be read: this boot cannot be told from another one, and no lease can be taken",
        "let this process read /proc/sys/kernel/random/boot_id",
      ),
    ];
  }
}

const MAKE_ANEW = "run: cotenant worktree init";

/** Whether this worktree knows who it is, and no other thinks the same. */
export const worktreeCheck: Check = {
  name: "worktree",
  async look(patient) {
    const { place, platform, repository } = patient;
    const {
      identity,
      standing,
      warning: words,
    } = await readWorktreeIdentity(platform, place.git, repository);
    const data = { worktree_id: identity.worktreeId, standing };
    const own =
      standing === "stored" || standing === "new"
        ? ok(`${identity.worktreeId}${standing === "new" ? " (not stored yet)" : ""}`, data)
        : standing === "moved"
          ? note(words ?? "this worktree was moved", MAKE_ANEW, data)
          : warning(
              words ?? "its identity is not its own",
              standing === "doubled"
                ? "keep one of the two directories; another worktree is made with 'cotenant worktree create'"
                : MAKE_ANEW,
              data,
            );
    return [own, ...(await twins(patient))];
  },
};

async function twins({ place, platform, repository }: Patient): Promise<Reported[]> {
  const roots = new Map<string, string[]>();
  for (const { worktreeId, root } of await listWorktrees(platform, place.git, repository)) {
    if (worktreeId !== null) roots.set(worktreeId, [...(roots.get(worktreeId) ?? []), root]);
  }
  return [...roots]
    .filter(([, where]) => where.length > 1)
    .map(([worktreeId, where]) =>
      warning(
        `${worktreeId} is the id of several worktrees: ${some(where)}`,
        `in each of them, ${MAKE_ANEW}`,
        {
          worktree_id: worktreeId,
          roots: where,
        },
      ),
    );
}
