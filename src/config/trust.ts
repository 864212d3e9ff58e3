import { during, limitError } from "../errors/cotenant-error";
import type { Digest, Platform } from "../platform/platform";
import { replaceFile } from "../platform/replace-file";
import type { ConfigKey, ConfigValue } from "./schema";
import { canonicalValue } from "./values";

/**
 * Something that a repository asks for and that somebody of this clone allowed: by what it is and what it says, so
 * that a change needs to be allowed again and a comment beside it does not.
 */
export interface Trusted {
  /** `config:policy.evict`. */
  readonly subject: string;
  readonly digest: string;
  readonly trustedAt: string;
  readonly trustedBy: string;
}

/** What this clone trusts. It lives in the control plane, which no commit reaches. */
export interface Trust {
  readonly entries: readonly Trusted[];
  /** Why nothing is trusted although there is a file. */
  readonly problem: string | null;
}

export const NO_TRUST: Trust = { entries: [], problem: null };

const SCHEMA_VERSION = 1;
const MAX_ENTRIES = 10_000;

export function trustFile(controlDirectory: string): string {
  return `${controlDirectory}/trust.json`;
}

export function subjectOf(key: ConfigKey): string {
  return `config:${key}`;
}

export function digestOf(digest: Digest, value: ConfigValue): string {
  return digest.sha256(canonicalValue(value));
}

export function trusts(trust: Trust, subject: string, digest: string): boolean {
  return trust.entries.some((entry) => entry.subject === subject && entry.digest === digest);
}

/** In doubt nothing is trusted: a file that cannot be understood gives nobody any right. */
export async function readTrust(platform: Platform, controlDirectory: string): Promise<Trust> {
  const path = trustFile(controlDirectory);
  const bytes = await during("reading what this clone trusts", path, () => platform.files.readFile(path));
  if (bytes === null) return NO_TRUST;
  try {
    const document = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
    const version = document["schema_version"];
    if (typeof version === "number" && version > SCHEMA_VERSION)
      return { entries: [], problem: `${path} was written by a newer cotenant; nothing in it is trusted` };
    if (version === SCHEMA_VERSION && Array.isArray(document["entries"]))
      return { entries: document["entries"].map(entryFrom), problem: null };
  } catch {
    // Said below.
  }
  return { entries: [], problem: `${path} is damaged; nothing in it is trusted` };
}

function entryFrom(raw: unknown): Trusted {
  const { subject, digest, trusted_at: trustedAt, trusted_by: trustedBy } = raw as Record<string, unknown>;
  const texts = [subject, digest, trustedAt, trustedBy];
  if (!texts.every((text) => typeof text === "string")) throw new Error("not an entry");
  return { subject, digest, trustedAt, trustedBy } as Trusted;
}

/** The control plane must be there. */
export async function writeTrust(
  platform: Platform,
  controlDirectory: string,
  entries: readonly Trusted[],
): Promise<void> {
  if (entries.length > MAX_ENTRIES)
    throw limitError(
      `this clone trusts ${entries.length} things; the limit is ${MAX_ENTRIES}`,
      "run 'cotenant trust --revoke' and trust what is still wanted",
    );
  const document = {
    schema_version: SCHEMA_VERSION,
    entries: entries.map(({ subject, digest, trustedAt, trustedBy }) => ({
      subject,
      digest,
      trusted_at: trustedAt,
      trusted_by: trustedBy,
    })),
  };
  const path = trustFile(controlDirectory);
  await during("writing what this clone trusts", path, () =>
    replaceFile(platform, path, `${JSON.stringify(document, null, 2)}\n`, 0o600),
  );
}
