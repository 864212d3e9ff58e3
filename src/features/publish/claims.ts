import { sharesClaims } from "../../config/shared-claims";
import type { ClaimFence, FencedPush, WrittenUnder } from "../../coordinator/fence";
import type { Session } from "../../coordinator/session";
import type { Workspace } from "../../coordinator/workspace";
import { CommitReader } from "../../git/commits";
import type { ObjectId } from "../../git/object-name";
import { ulidIn } from "../../kernel/ids";
import { nameOf } from "../../kernel/keys";
import { type Lease, sameParty } from "../../kernel/lease";
import { isCutOff } from "../../platform/git";
import { parseTrailers, type Trailer } from "../hooks/trailers";
import { silent } from "./push";

/** Opened only where a publish is made under claims at all. Null: they are shared with nobody. */
export type OpenFence = () => Promise<ClaimFence | null>;

const isClaim = ({ key }: Pick<Lease, "key">) => key.startsWith("issue:");

/**
 * The claims that a publish is made under, where claims are shared between machines: those that cover what it changes, and
 * every other that its session holds. Files are leased here only; who works on the issue is what other machines know.
 */
export class ClaimsUnder {
  #fence: Promise<ClaimFence | null> | null = null;

  constructor(
    private readonly workspace: Workspace,
    private readonly session: Session,
    private readonly open: OpenFence,
  ) {}

  /** Refuses those that only this clone knows of, before anything is written. */
  async confirmed(covering: readonly Lease[]): Promise<readonly Lease[]> {
    if (!this.#isShared) return [];
    const claims = await this.#held(covering.filter(isClaim));
    if (claims.length > 0) await (await this.#theFence())?.requireConfirmed(claims);
    return claims;
  }

  /** Whether a push to this remote can be fenced, before there is anything to push. */
  async refuseUnfenced(claims: readonly Lease[], remote: string): Promise<void> {
    if (claims.length > 0) await (await this.#theFence())?.requireFenced(remote);
  }

  /**
   * What has to be pushed along with everything up to this commit; null where nothing has to. PROTOCOL 24: what was written
   * under a claim is published under it, so the commits themselves say which claims they are, not what is valid now.
   */
  async fence(tip: ObjectId, remote: string): Promise<FencedPush | null> {
    if (!this.#isShared) return null;
    const written = await this.#writtenUnder(tip, remote);
    return written.length === 0 ? null : ((await (await this.#theFence())?.fence(written, remote)) ?? null);
  }

  get #isShared(): boolean {
    return sharesClaims(this.workspace.config);
  }

  #theFence(): Promise<ClaimFence | null> {
    this.#fence ??= this.open();
    return this.#fence;
  }

  async #held(known: readonly Lease[]): Promise<Lease[]> {
    const all = new Map(known.map((lease) => [lease.leaseId, lease]));
    for (const { lease, standing } of await this.workspace.coordinator.list({ kinds: ["issue"] }))
      if (standing === "valid" && sameParty(lease, this.session.actor)) all.set(lease.leaseId, lease);
    return [...all.values()];
  }

  /** Each claim once, with the newest commit that names it. */
  async #writtenUnder(tip: ObjectId, remote: string): Promise<WrittenUnder[]> {
    const { surroundings, repository } = this.workspace;
    const reader = new CommitReader(surroundings.git, { cwd: repository.worktreeRoot });
    const options = ["--not", ...(await this.#remotesCommits(remote)), "--not"];
    const found = new Map<string, WrittenUnder>();
    for (const { oid, message } of await reader.read(await reader.list({ names: [tip], options })))
      for (const trailer of parseTrailers(message).issues) {
        const claim = claimIn(trailer);
        if (claim !== null) found.set(`${claim.issueId} ${claim.leaseId}`, { commit: oid, ...claim });
      }
    return [...found.values()];
  }

  /** What the remote has already: as it says itself, as far as this clone has it; where it says nothing, as last fetched. */
  async #remotesCommits(remote: string): Promise<string[]> {
    const { surroundings, repository, config } = this.workspace;
    const cwd = repository.worktreeRoot;
    const timeoutMs = Math.min(LOOK_MS, config.values["publish.push_timeout_secs"] * 1000);
    const fetched = `--remotes=${remote}`;
    const env = await silent(this.workspace);
    let text = "";
    try {
      const asked = ["ls-remote", "--heads", "--end-of-options", remote];
      text = new TextDecoder().decode((await surroundings.git.run(asked, { cwd, env, timeoutMs })).stdout);
    } catch (error) {
      // The push itself says what is wrong with the remote.
      if (!isCutOff(error)) throw error;
    }
    const oids = text.match(/^[0-9a-f]{40,64}(?=\t)/gm) ?? [];
    if (oids.length === 0) return [fetched];
    const asked = `${[...new Set(oids)].slice(0, MOST_HEADS).join("\n")}\n`;
    const known = await surroundings.git.run(["cat-file", "--batch-check=%(objecttype) %(objectname)"], {
      cwd,
      input: asked,
    });
    const here = new TextDecoder().decode(known.stdout).matchAll(/^commit ([0-9a-f]{40,64})$/gm);
    return [fetched, ...[...here].map(([, oid]) => oid!)];
  }
}

const LOOK_MS = 20_000;
/** More do not fit on a command line; what is missing here only makes for more commits to be looked at. */
const MOST_HEADS = 1_000;

function claimIn({ issueId, leaseId }: Trailer): Pick<WrittenUnder, "issueId" | "leaseId"> | null {
  const [issue, lease] = [ulidIn(issueId), ulidIn(leaseId)];
  return issue === null || lease === null ? null : { issueId: issue, leaseId: lease };
}

/** As a commit names the claims that it is made under. */
export function claimTrailers(claims: readonly Lease[]): Trailer[] {
  return claims.map(({ key, leaseId, fencingToken }) => ({
    issueId: nameOf(key),
    leaseId,
    token: fencingToken,
  }));
}
