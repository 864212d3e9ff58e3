import { createHash } from "node:crypto";
import { sharesClaims } from "../config/shared-claims";
import type { Workspace } from "../coordinator/workspace";

/** What a clone's claims go by; null where they are not shared. Two processes with one mark would do the same with a claim. */
export function ledgerMark({ config, repository }: Pick<Workspace, "config" | "repository">): string | null {
  if (!sharesClaims(config)) return null;
  const values = Object.entries(config.values).filter(([name]) => name.startsWith("sync."));
  const said = JSON.stringify([repository.worktreeRoot, config.policy, values.sort()]);
  return createHash("sha256").update(said).digest("hex").slice(0, 32);
}
