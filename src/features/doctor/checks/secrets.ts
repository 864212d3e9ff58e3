import type { LeaseRef } from "../../../kernel/commands";
import { decodeSecret, type SecretEntry } from "../../../store/secrets";
import { type Check, note, ok } from "../finding";
import type { Patient } from "../patient";
import { treeBelow } from "../tree";
import { many } from "../words";

/** Asked for lately: whoever asked may not have its lease yet. */
const RECENT_MS = 3600 * 1000;

/** Secrets whose leases have ended prove nothing, and should not lie around. Only counted, never shown. */
export const secretsCheck: Check = {
  name: "secrets",
  async look(patient) {
    const entries = await readable(patient);
    if (entries.length === 0) return [ok("no secrets are kept")];
    const recentMs = patient.platform.clock.wallMs() - RECENT_MS;
    const old = entries.filter(({ madeAtMs }) => madeAtMs <= recentMs);
    const refs: LeaseRef[] = old.flatMap(({ leases }) =>
      leases.map(({ key, leaseId }) => ({ key, leaseId })),
    );
    const needed = new Set<string>([
      ...(await patient.leases()).map(({ lease }) => lease.leaseId),
      // Taken from their holders: the secret is still needed to be told so.
      ...(await patient.coordinator.endings(refs)).map(({ leaseId }) => leaseId),
    ]);
    const useless = old.filter(({ leases }) => !leases.some(({ leaseId }) => needed.has(leaseId))).length;
    const data = { secrets: entries.length, useless };
    if (useless === 0) return [ok(many(entries.length, "secret"), data)];
    const message = `${many(useless, "secret")} of ended leases: they prove nothing any more`;
    return [note(message, "each agent's own 'cotenant gc' forgets them", data)];
  },
};

/** Other users' secrets are none of ours. */
async function readable({ platform, layout }: Patient): Promise<SecretEntry[]> {
  const { entries } = await treeBelow(platform.files, layout.secrets);
  const found: SecretEntry[] = [];
  for (const { path, stat } of entries) {
    if (stat.kind !== "file" || !path.endsWith(".json")) continue;
    const bytes = await readOrNull(platform.files, path);
    for (const line of new TextDecoder().decode(bytes ?? new Uint8Array()).split("\n")) {
      const entry = line === "" ? null : decodeSecret(line);
      if (entry !== null) found.push(entry);
    }
  }
  return found;
}

async function readOrNull(files: Patient["platform"]["files"], path: string): Promise<Uint8Array | null> {
  try {
    return await files.readFile(path);
  } catch {
    return null;
  }
}
