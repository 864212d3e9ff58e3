import { during } from "../errors/cotenant-error";
import type { Platform } from "../platform/platform";
import { replaceFile } from "../platform/replace-file";
import type { ConfigEntry, ConfigLayer } from "./layers";
import type { ConfigKey } from "./schema";

/**
 * The ledger that this clone shares its claims on since it was set up here. It is kept in the control plane, which no commit
 * reaches: a branch or a worktree whose settings do not name the ledger must not take this clone out of it.
 */
export interface JoinedLedger {
  readonly branch: string;
  readonly remote: string;
  readonly claimsPrefix: string;
}

const SCHEMA_VERSION = 1;

export function joinedLedgerFile(controlDirectory: string): string {
  return `${controlDirectory}/joined-ledger.json`;
}

/** Null where there is none, or none that can be understood: then only what is configured counts. */
export async function readJoinedLedger(
  platform: Platform,
  controlDirectory: string,
): Promise<JoinedLedger | null> {
  const path = joinedLedgerFile(controlDirectory);
  const bytes = await during("reading which ledger this clone has joined", path, () =>
    platform.files.readFile(path),
  );
  if (bytes === null) return null;
  try {
    const wire = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
    const { schema_version: version, branch, remote, claims_prefix: claimsPrefix } = wire;
    if (version !== SCHEMA_VERSION) return null;
    if (![branch, remote, claimsPrefix].every((text) => typeof text === "string" && text !== "")) return null;
    return { branch, remote, claimsPrefix } as JoinedLedger;
  } catch {
    return null;
  }
}

/** The control plane must be there. */
export async function writeJoinedLedger(
  platform: Platform,
  controlDirectory: string,
  { branch, remote, claimsPrefix }: JoinedLedger,
): Promise<void> {
  const path = joinedLedgerFile(controlDirectory);
  const wire = { schema_version: SCHEMA_VERSION, branch, remote, claims_prefix: claimsPrefix };
  await during("writing which ledger this clone has joined", path, () =>
    replaceFile(platform, path, `${JSON.stringify(wire, null, 2)}\n`, 0o600),
  );
}

/** As the weakest of all sources: whatever names a ledger comes before it. */
export function joinedLayer({ branch, remote, claimsPrefix }: JoinedLedger): ConfigLayer {
  const entry = (value: string): ConfigEntry => ({
    value,
    place: "the ledger that was set up here",
    line: null,
  });
  const entries = new Map<ConfigKey, ConfigEntry>([
    ["sync.ledger_branch", entry(branch)],
    ["sync.remote", entry(remote)],
    ["sync.claims_prefix", entry(claimsPrefix)],
  ]);
  return { source: "clone", entries, problems: [] };
}
