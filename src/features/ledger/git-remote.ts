import { CotenantError, fileFailure } from "../../errors/cotenant-error";
import { encodeCommit } from "../../git/commit";
import { LooseObjects } from "../../git/loose-objects";
import { readRefFile } from "../../git/refs";
import { highestWithinReach } from "../../kernel/bounds";
import { printable, type Ulid, ulidIn, ulidTimeMs } from "../../kernel/ids";
import { isCutOff } from "../../platform/git";
import { newUlid } from "../../platform/new-ulid";
import { DamagedCopy, type LedgerCopy, looksDamaged } from "./copy";
import { type PushAnswer, readPushAnswer } from "./push-answer";
import { claimMessage, readClaim } from "./record";
import {
  type ClaimRef,
  type ClaimUpdate,
  type LedgerRemote,
  type MadeUpdate,
  type PushOutcome,
  type RemoteClaims,
  tokenOf,
} from "./remote";
import { decodeTokens, TOKENS_PATH } from "./tokens";

/** What was last heard of the remote's claims, and of its branch. */
const SEEN = "refs/seen/claims/";
export const SEEN_BRANCH = "refs/seen/branch";
/** What one operation hears, by its own id. */
const LOOKS = "refs/look/";
const FORMAT = "--format=%(refname)%00%(objectname)%00%(contents)%00%00";
/** A look of a process that was killed; no operation takes that long. */
const OLD_LOOK_MS = 3_600_000;
/** More than this in one command could be too much for its command line. */
const MOST_AT_ONCE = 200;

/** Claims as refs of a Git remote, by way of this machine's copy. */
export class GitRemote implements LedgerRemote {
  readonly copy: LedgerCopy;
  /** `sync.claims_prefix`. */
  readonly #prefix: string;
  /** `sync.ledger_branch`. */
  readonly branch: string;
  #branchSeen: string | null = null;
  /** What the branch says of tokens, as of that commit of it. */
  #written: { readonly at: string | null; readonly token: number } | null = null;
  #looks: string[] = [];
  readonly #news = new Map<Ulid, { readonly before: string | null; readonly oid: string }>();

  constructor(copy: LedgerCopy, names: { prefix: string; branch: string }) {
    this.copy = copy;
    this.#prefix = names.prefix;
    this.branch = names.branch;
  }

  refOf(id: Ulid): string {
    return `${this.#prefix}${id}`;
  }

  async look(ids: readonly Ulid[] | "all"): Promise<RemoteClaims> {
    await this.copy.ensure();
    // Before the remote is asked: what is there by then continues what was seen by now, or it was rewritten.
    const before = await this.seen(ids);
    if (this.#branchSeen === null) await this.attach();
    const heard = ids === "all" ? await this.#hearAll(before) : await this.#hear(ids);
    await this.#refuseRewritten(before, heard);
    for (const [id, { oid }] of heard) {
      const known = before.get(id)?.oid ?? null;
      if (known !== oid) this.#news.set(id, { before: known, oid });
    }
    const isNew = ids !== "all" && ids.some((id) => !heard.has(id));
    return { claims: heard, highestToken: isNew ? await this.#writtenToken() : 0 };
  }

  async recall(ids: readonly Ulid[]): Promise<RemoteClaims | null> {
    const claims = await this.seen(ids);
    if (this.#branchSeen === null) return null;
    return { claims, highestToken: claims.size < ids.length ? await this.#writtenToken() : 0 };
  }

  async seen(ids: readonly Ulid[] | "all"): Promise<Map<Ulid, ClaimRef>> {
    if (!(await this.copy.exists())) {
      this.#branchSeen = null;
      return new Map();
    }
    if (ids !== "all" && (await this.#isUnheardOf(ids))) return new Map();
    const patterns = ids === "all" ? [SEEN] : ids.map((id) => SEEN + id);
    const { claims, branch } = await this.#refs([SEEN_BRANCH, ...patterns], SEEN);
    // Also where it is gone: another process may have taken the ledger anew.
    this.#branchSeen = branch;
    return claims;
  }

  /** Whether nothing was ever heard of any of them, as for most new claims: then there is nothing to ask a Git process for. */
  async #isUnheardOf(ids: readonly Ulid[]): Promise<boolean> {
    const { platform, options, place } = this.copy;
    const { copy: commonDir } = place;
    if ((await platform.files.stat(`${commonDir}/reftable`)) !== null) return false;
    const config = { objectFormat: options.objectFormat, refFormat: "files" } as const;
    const read = (ref: string) => readRefFile(platform, { commonDir, config }, ref);
    try {
      for (const id of ids) if ((await read(SEEN + id)) !== null) return false;
      const branch = await read(SEEN_BRANCH);
      if (branch === null || !("oid" in branch)) return false;
      this.#branchSeen = branch.oid;
      return true;
    } catch {
      // Git says what is wrong with it.
      return false;
    }
  }

  /** The first contact of this machine: there must be a ledger at all. */
  async attach(): Promise<string> {
    await this.copy.ensure();
    const tip = await this.fetchBranch();
    if (tip !== null) return tip;
    throw new CotenantError(
      "E_LEDGER_NOT_CONFIGURED",
      `${this.copy.transport.remote} has no branch ${this.branch}`,
      {
        hint: "set it up once, from any clone: cotenant sync --setup-ledger",
        data: { remote: this.copy.transport.remote, branch: this.branch },
      },
    );
  }

  /** The data branch as it is now, with everything in it; null where the remote has none and never had. */
  async fetchBranch(): Promise<string | null> {
    const before = await this.branchSeen();
    const space = `${LOOKS}${newUlid(this.copy.platform)}/branch/`;
    await this.bring([`+refs/heads/${this.branch}*:${space}${this.branch}*`]);
    const text = await this.copy.text(["for-each-ref", "--format=%(refname) %(objectname)", space]);
    let tip: string | null = null;
    for (const line of text.split("\n")) {
      const [ref = "", oid = ""] = line.split(" ");
      if (ref === space + this.branch) tip = oid;
      if (ref !== "") this.#looks.push(ref);
    }
    if (before !== null) await this.#refuseRewrittenBranch(before, tip);
    if (tip !== null) await this.noteBranch(tip);
    return tip;
  }

  async #refuseRewrittenBranch(before: string, tip: string | null): Promise<void> {
    if (tip === null) throw rewritten(`the branch ${this.branch} is gone from the remote`, { was: before });
    if (tip === before) return;
    const { status } = await this.copy.run(["merge-base", "--is-ancestor", before, tip]);
    if (status !== 0)
      throw rewritten(`the branch ${this.branch} does not go on from what was seen of it`, {
        was: before,
        now: tip,
      });
  }

  async branchSeen(): Promise<string | null> {
    const { status, stdout } = await this.copy.run([
      "rev-parse",
      "--verify",
      "--quiet",
      `${SEEN_BRANCH}^{commit}`,
    ]);
    return status === 0 ? new TextDecoder().decode(stdout).trim() : null;
  }

  /**
   * PROTOCOL 26: of all claims that were ever seen here, or by whoever wrote to the branch; `here`: the highest of this
   * clone's own.
   */
  async highestToken(here: number): Promise<number> {
    const seen = [...(await this.seen("all")).values()].map(tokenOf);
    return highestWithinReach([...seen, await this.#writtenToken()], here);
  }

  async #writtenToken(): Promise<number> {
    if (this.#written !== null && this.#written.at === this.#branchSeen) return this.#written.token;
    const { status, stdout } = await this.copy.run(["cat-file", "blob", `${SEEN_BRANCH}:${TOKENS_PATH}`]);
    const token = (status === 0 ? decodeTokens(stdout) : null) ?? 0;
    this.#written = { at: this.#branchSeen, token };
    return token;
  }

  /** Forward only: somebody else may have seen more. */
  async noteBranch(tip: string): Promise<void> {
    this.#branchSeen = tip;
    const before = await this.branchSeen();
    if (before === tip) return;
    const isOlder =
      before !== null && (await this.copy.run(["merge-base", "--is-ancestor", tip, before])).status === 0;
    if (!isOlder) await this.copy.run(["update-ref", SEEN_BRANCH, tip, ...(before === null ? [] : [before])]);
  }

  async make(updates: readonly ClaimUpdate[]): Promise<MadeUpdate[]> {
    const atMs = this.copy.platform.clock.wallMs();
    const dated = updates.map((update) => ({ ...update, atMs }));
    const oids = await this.commit(dated);
    return dated.map((update, i) => ({ ...update, oid: oids[i]! }));
  }

  /** Made without a Git process: claims are made one after the other by many, and a process takes longer than all the rest. */
  async commit(updates: readonly (ClaimUpdate & { readonly atMs: number })[]): Promise<string[]> {
    const { platform, place, options } = this.copy;
    const objects = new LooseObjects(platform, `${place.copy}/objects`, options.objectFormat);
    const oids: string[] = [];
    try {
      for (const update of updates) oids.push(await objects.write("commit", this.#commitOf(update)));
      await objects.reveal();
    } catch (error) {
      const { code } = error as { code?: unknown };
      if (code === "ENOENT" || code === "ENOTDIR")
        throw new DamagedCopy(place.copy, (error as Error).message);
      throw fileFailure(error, "writing to the ledger's copy", place.copy);
    }
    return oids;
  }

  async push(updates: readonly MadeUpdate[], isAtomic: boolean): Promise<PushOutcome[]> {
    const outcomes: PushOutcome[] = [];
    for (let at = 0; at < updates.length; at += MOST_AT_ONCE)
      outcomes.push(...(await this.#push(updates.slice(at, at + MOST_AT_ONCE), isAtomic)));
    return outcomes;
  }

  async settle(): Promise<void> {
    const [looks, news] = [this.#looks, [...this.#news]];
    this.#looks = [];
    this.#news.clear();
    const forget = looks.map((ref) => `delete ${ref}\n`).join("");
    const remember = news
      .map(([id, { before, oid }]) =>
        before === null ? `create ${SEEN}${id} ${oid}\n` : `update ${SEEN}${id} ${oid} ${before}\n`,
      )
      .join("");
    if (forget + remember === "") return;
    const { status } = await this.copy.run(["update-ref", "--stdin"], forget + remember);
    // Somebody else has heard of it too, and perhaps more: what they remember counts.
    if (status !== 0 && forget !== "") await this.copy.run(["update-ref", "--stdin"], forget);
  }

  // --- asking ---------------------------------------------------------------------------------------------

  async #hear(ids: readonly Ulid[]): Promise<Map<Ulid, ClaimRef>> {
    const heard = new Map<Ulid, ClaimRef>();
    for (let at = 0; at < ids.length; at += MOST_AT_ONCE) {
      const space = `${LOOKS}${newUlid(this.copy.platform)}/`;
      // By pattern: one that is not there is no failure then, and servers send no others.
      const specs = ids.slice(at, at + MOST_AT_ONCE).map((id) => `+${this.refOf(id)}*:${space}${id}*`);
      await this.bring(specs);
      for (const [id, ref] of (await this.#refs([space], space)).claims) {
        heard.set(id, ref);
        this.#looks.push(space + id);
      }
    }
    return heard;
  }

  /** The names of all of them first, and only what is new of them. */
  async #hearAll(before: ReadonlyMap<Ulid, ClaimRef>): Promise<Map<Ulid, ClaimRef>> {
    const { stdout, ...result } = await this.copy.talk([
      "ls-remote",
      "--quiet",
      "--refs",
      "--end-of-options",
      this.copy.transport.remote,
      `${this.#prefix}*`,
    ]);
    if (result.status !== 0) throw this.#failure("looking at the claims", { stdout, ...result });
    const heard = new Map<Ulid, ClaimRef>();
    const changed: Ulid[] = [];
    for (const line of new TextDecoder().decode(stdout).split("\n")) {
      const [oid = "", ref = ""] = line.split("\t");
      const id = ref.startsWith(this.#prefix) ? ulidIn(ref.slice(this.#prefix.length)) : null;
      if (id === null) continue;
      const known = before.get(id);
      if (known?.oid === oid) heard.set(id, known);
      else changed.push(id);
    }
    for (const [id, ref] of await this.#hear(changed)) heard.set(id, ref);
    return heard;
  }

  /** Into refs of the copy; answers nothing that was not asked for. */
  async bring(specs: readonly string[]): Promise<void> {
    const args = [
      "fetch",
      "--quiet",
      "--no-tags",
      "--no-write-fetch-head",
      "--no-auto-maintenance",
      "--stdin",
      "--end-of-options",
      this.copy.transport.remote,
    ];
    const result = await this.copy.talk(args, `${specs.join("\n")}\n`);
    if (result.status !== 0) throw this.#failure("looking at the ledger", result);
  }

  #failure(doing: string, result: Awaited<ReturnType<LedgerCopy["run"]>>): CotenantError {
    if (looksDamaged(result.stderr) && !/does not appear to be a git repository/i.test(result.stderr))
      return new DamagedCopy(this.copy.place.copy, result.stderr);
    return this.copy.failure(doing, result);
  }

  async #refs(
    patterns: readonly string[],
    space: string,
  ): Promise<{ claims: Map<Ulid, ClaimRef>; branch: string | null }> {
    const claims = new Map<Ulid, ClaimRef>();
    let branch: string | null = null;
    for (let at = 0; at < patterns.length; at += MOST_AT_ONCE) {
      const text = await this.copy.text(["for-each-ref", FORMAT, ...patterns.slice(at, at + MOST_AT_ONCE)]);
      for (const entry of text.split("\0\0\n")) {
        const [ref = "", oid = "", message = ""] = entry.split("\0");
        if (ref === SEEN_BRANCH) branch = oid;
        const id = ref.startsWith(space) ? ulidIn(ref.slice(space.length)) : null;
        if (id !== null) claims.set(id, { oid, reading: readClaim(id, message) });
      }
    }
    return { claims, branch };
  }

  /** PROTOCOL 26: absent is not free, and a claim's commits only ever go on from one another. */
  async #refuseRewritten(
    before: ReadonlyMap<Ulid, ClaimRef>,
    now: ReadonlyMap<Ulid, ClaimRef>,
  ): Promise<void> {
    const gone = [...before.keys()].filter((id) => !now.has(id));
    if (gone.length > 0) throw rewritten(vanished(gone), { issue_ids: gone.slice(0, 20) });
    const moved = [...now].filter(([id, { oid }]) => before.has(id) && before.get(id)!.oid !== oid);
    if (moved.length === 0) return;
    const lines = moved.map(([id, { oid }]) => `${before.get(id)!.oid}\n^${oid}\n`).join("");
    const lost = (await this.copy.text(["rev-list", "--stdin"], lines))
      .split("\n")
      .filter((line) => line !== "");
    if (lost.length > 0)
      throw rewritten(`claims have lost commits that were seen in them (${lost.length})`, {
        commits: lost.slice(0, 20),
      });
  }

  // --- telling --------------------------------------------------------------------------------------------

  async #push(updates: readonly MadeUpdate[], isAtomic: boolean): Promise<PushOutcome[]> {
    const guards = updates.map(
      ({ issueId, expected }) => `--force-with-lease=${this.refOf(issueId)}:${expected ?? ""}`,
    );
    const specs = updates.map(({ issueId, oid }) => `${oid}:${this.refOf(issueId)}`);
    const answer = await this.send([...guards, ...(isAtomic ? ["--atomic"] : [])], specs);
    return updates.map(({ issueId, expected, oid }) => {
      const outcome = answer.of(this.refOf(issueId), oid);
      if (outcome.kind === "done") this.#news.set(issueId, { before: this.#known(issueId, expected), oid });
      return outcome;
    });
  }

  /** What `seen` will have for it by the time that it is settled. */
  #known(id: Ulid, expected: string | null): string | null {
    const news = this.#news.get(id);
    return news === undefined ? expected : news.before;
  }

  async send(options: readonly string[], specs: readonly string[]): Promise<PushAnswer> {
    const args = [
      "push",
      "--porcelain",
      "--no-verify",
      ...options,
      "--end-of-options",
      this.copy.transport.remote,
      ...specs,
    ];
    try {
      const result = await this.copy.talk(args);
      const answer = readPushAnswer(result);
      const isOurs = answer.isUnpackable && looksDamaged(result.stderr.replace(/^remote:.*$/gm, ""));
      if (answer.isUnsent || isOurs) throw this.#failure("pushing to the ledger", result);
      return answer;
    } catch (error) {
      if (isCutOff(error))
        return readPushAnswer({ status: -1, stdout: new Uint8Array(), stderr: error.message });
      throw error;
    }
  }

  /** The claim's next commit, on top of what it is expected to be, by whoever holds or ended it: others may bring it. */
  #commitOf({ expected, record, subject, atMs }: ClaimUpdate & { readonly atMs: number }): Uint8Array {
    const name = record.ended?.by ?? record.agentId;
    const author = { name, email: emailOf(name), time: Math.floor(atMs / 1000), zone: "+0000" };
    const { objectFormat } = this.copy.options;
    return encodeCommit({
      tree: EMPTY_TREE[objectFormat],
      parents: expected === null ? [] : [expected],
      author,
      committer: author,
      message: claimMessage(record, subject),
    });
  }

  /** Looks that nobody will come back to. */
  async forgetOldLooks(): Promise<void> {
    const text = await this.copy.text(["for-each-ref", "--format=%(refname)", LOOKS]);
    const old = text.split("\n").filter((ref) => {
      const id = ulidIn(ref.slice(LOOKS.length).split("/")[0]);
      return id !== null && ulidTimeMs(id) < this.copy.platform.clock.wallMs() - OLD_LOOK_MS;
    });
    if (old.length > 0)
      await this.copy.run(["update-ref", "--stdin"], old.map((ref) => `delete ${ref}\n`).join(""));
  }
}

const EMPTY_TREE = {
  sha1: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
  sha256: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
} as const;

/** Nobody's: who did it is said by name. */
export function emailOf(name: string): string {
  return `${name.replace(/[^\w.+-]/g, "-")}@cotenant.invalid`;
}

function vanished(ids: readonly Ulid[]): string {
  return ids.length === 1
    ? `issue ${ids[0]} had a claim at the remote, and has none now`
    : `${ids.length} issues (${ids[0]}, …) had claims at the remote, and have none now`;
}

function rewritten(what: string, data: Record<string, unknown> = {}): CotenantError {
  return new CotenantError("E_LEDGER_REWRITTEN", `the ledger was rewritten: ${printable(what, 300)}`, {
    data,
  });
}
