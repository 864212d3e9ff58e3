import type { Session } from "../../coordinator/session";
import { CotenantError, errorFrom } from "../../errors/cotenant-error";
import { isCount } from "../../kernel/bounds";
import { trusted, type Ulid } from "../../kernel/ids";
import { issueKey } from "../../kernel/keys";
import type { Lease } from "../../kernel/lease";
import { isRefusal, type Refusal } from "../../kernel/refusal";
import type { Intention, Standing } from "../../store/guarded-write";
import { type Author, additionsOf, type DataEvent, type IssueChange } from "./changes";
import { IssueFolder, type LoggedWrite, type RawIssue } from "./folder";
import { lineageAfter } from "./lineage";
import { encodeIssue, type Issue } from "./model";
import { type IssueReader, usable } from "./reader";
import { copyFrom, type FoundIssue, isFound, resolve, versionOf } from "./resolve";
import {
  type Addition,
  type AppendOnly,
  COMMENTS,
  DEPENDENCIES,
  LABELS,
  RESULTS,
  stampFromFact,
  stampName,
  stampToFact,
  type WrittenStamp,
} from "./stamps";

/** `worktree.enforce_leases`. */
export type Enforcement = "strict" | "warn" | "off";

export interface WriteOptions {
  readonly requestId?: Ulid | null;
  readonly secret?: string | null;
  /** Instead of what is configured: a gate's result by a person or CI needs no claim. */
  readonly enforcement?: Enforcement;
  /** Of a deleted issue whose deletion nothing has any more: it is written anew, on what its newest copy has. */
  readonly takesBack?: boolean;
}

/** Asked inside the critical section, with the issue as it stands there; null where there is nothing to change. */
export type Change = (current: FoundIssue) => IssueChange | null | Promise<IssueChange | null>;

export interface WriteOutcome {
  /** As it stands after the write. */
  readonly found: FoundIssue;
  readonly changed: boolean;
  /** True when it is the remembered outcome of an earlier call with the same request id. */
  readonly replayed: boolean;
  readonly lease: Lease | null;
  readonly warnings: readonly string[];
}

export interface Draft {
  readonly issue: Issue;
  readonly labels: readonly string[];
  readonly dependencies: readonly string[];
}

/** How many new issues one line of the log speaks of. */
const ISSUES_PER_LINE = 200;

/**
 * Guarded writes of issues (PROTOCOL 17). With a session, each is proved and logged in the store's critical section;
 * without one (outside Git) there is nobody to prove it to.
 */
export class IssueWriter {
  readonly #reader: IssueReader;
  readonly #session: Session | null;
  readonly #enforcement: Enforcement;
  readonly #agentId: string;

  constructor(reader: IssueReader, session: Session | null, enforcement: Enforcement, agentId: string) {
    this.#reader = reader;
    this.#session = session;
    this.#enforcement = enforcement;
    this.#agentId = agentId;
  }

  /** New issues need no lease: nobody else can know their ids yet. */
  async create(drafts: readonly Draft[]): Promise<Issue[]> {
    const created: Issue[] = [];
    for (let at = 0; at < drafts.length; at += ISSUES_PER_LINE)
      created.push(...(await this.#createSome(drafts.slice(at, at + ISSUES_PER_LINE), null)));
    return created;
  }

  /** One, and once: with a request id that was used before, the issue that was made then. */
  async createOne(draft: Draft, requestId: Ulid | null): Promise<Issue> {
    const [issue] = await this.#createSome([draft], requestId);
    return issue!;
  }

  async update(id: Ulid, change: Change, options: WriteOptions = {}): Promise<WriteOutcome> {
    const committed = await this.#reader.committed(id);
    if (this.#session === null) return this.#updateAlone(id, change, committed);
    // What is asked under the mutex must not wait for Git.
    await this.#reader.sources.rootOf(this.#session.actor.worktreeId);
    const { requestId = null, secret = null } = options;
    // Whoever shows a secret means to write under its claim, whatever is enforced.
    const enforcement = secret === null ? (options.enforcement ?? this.#enforcement) : "strict";
    const written = await this.#session.write([{ key: keyOf(id), leaseId: null }], {
      about: `issue:${id}`,
      facts: [stampName(id)],
      requestId,
      secret,
      body: (standing) =>
        this.#body(id, change, committed, { enforcement, takesBack: options.takesBack ?? false }, standing),
    });
    if (!written.replayed && written.answer !== null) return written.answer;
    // What was done then may have been its deletion.
    const now = await this.#reader.find(id);
    const found = written.replayed && isFound(now) ? now : usable(id, now);
    return { found, changed: false, replayed: written.replayed, lease: null, warnings: [] };
  }

  /** Comments only ever come: they need no claim, and everybody's count. */
  async comment(id: Ulid, line: string, event: DataEvent, requestId: Ulid | null): Promise<boolean> {
    const found = await this.#reader.get(id);
    const folder = this.#reader.here;
    if (found.copy.root !== folder.root) await this.#bringIn(folder, await this.#whole(found));
    const at = this.#now();
    const author = { ...this.#author(null), at };
    const told = additionsOf(this.#reader.sources.platform, { events: [event] }, EMPTY, author);
    const additions: Addition[] = [{ file: COMMENTS, line }, ...told];
    const writes = [{ id, digest: null, additions }];
    const write = async () => {
      await folder.carryOutAll(writes);
      await folder.settleAll(writes);
    };
    if (this.#session === null) {
      await write();
      return true;
    }
    const written = await this.#session.write([], {
      about: `issue:${id}`,
      facts: [],
      requestId,
      body: async () => ({
        type: "issue.commented",
        payload: { issue_id: id },
        facts: new Map(),
        carryOut: write,
        answer: true,
      }),
    });
    return !written.replayed;
  }

  // --- one write ------------------------------------------------------------------------------------------

  async #body(
    id: Ulid,
    change: Change,
    committed: RawIssue | null,
    { enforcement, takesBack }: { readonly enforcement: Enforcement; readonly takesBack: boolean },
    standing: Standing,
  ): Promise<Intention<WriteOutcome> | null> {
    const warnings: string[] = [];
    const lease = standing.leases[0] ?? null;
    const stamp = readStamp(standing, id);
    if (standing.refusal !== null) {
      if (enforcement === "strict") {
        const seen = resolve(id, await this.#reader.copies(id, stamp, null, committed), stamp);
        // What is deleted cannot be claimed: that is what has to be said.
        if (isFound(seen) && seen.isDeleted && !takesBack) usable(id, seen);
        throw leaseRequired(id, standing.refusal);
      }
      if (enforcement === "warn") warnings.push(`written without a claim: ${standing.refusal.message}`);
    }
    const folder = await this.#folderFor(lease);
    if (stamp !== null) await folder.finish(id, stamp);
    const copies = await this.#reader.copies(id, stamp, lease?.worktreeId ?? null, committed);
    const resolved = resolve(id, copies, stamp);
    const found = takesBack && isFound(resolved) ? resolved : usable(id, resolved);
    const wanted = await change(found);
    if (wanted === null) return null;
    if (found.ahead !== null && !takesBack) warnings.push(aheadWarning(found.ahead));
    const version = versionAfter(id, [stamp?.version ?? 0, ...copies.map(versionOf)]);
    const author = { ...this.#author(lease), at: new Date(standing.now.wallMs).toISOString() };
    const plan = this.#plan(found, wanted, author, {
      version,
      lease_id: lease?.leaseId ?? null,
      fencing_token: lease?.fencingToken ?? null,
      sequence: standing.sequence,
    });
    await this.#bringIn(folder, found, stamp);
    await folder.stage(id, plan.text);
    return {
      type: "issue.written",
      payload: { issue_id: id, version, digest: plan.stamp.digest, state: plan.issue.state },
      facts: new Map([[stampName(id), stampToFact(plan.stamp)]]),
      carryOut: () => folder.carryOut(id, plan.stamp.digest, plan.stamp.additions),
      settle: () => folder.settle(id, plan.stamp.digest, plan.stamp.additions),
      answer: { found: plan.after(folder.root), changed: true, replayed: false, lease, warnings },
      result: { issue_id: id, version },
    };
  }

  async #updateAlone(id: Ulid, change: Change, committed: RawIssue | null): Promise<WriteOutcome> {
    const copies = await this.#reader.copies(id, null, null, committed);
    const found = usable(id, resolve(id, copies, null));
    const wanted = await change(found);
    const outcome = { replayed: false, lease: null, warnings: [] };
    if (wanted === null) return { ...outcome, found, changed: false };
    const version = versionAfter(id, copies.map(versionOf));
    const author = { ...this.#author(null), at: this.#now() };
    const plan = this.#plan(found, wanted, author, {
      version,
      lease_id: null,
      fencing_token: null,
      sequence: null,
    });
    const folder = this.#reader.here;
    await folder.stage(id, plan.text);
    await folder.carryOut(id, plan.stamp.digest, plan.stamp.additions);
    await folder.settle(id, plan.stamp.digest, plan.stamp.additions);
    return { ...outcome, found: plan.after(folder.root), changed: true };
  }

  #plan(
    found: FoundIssue,
    change: IssueChange,
    author: Author,
    stamp: Omit<Issue["stamp"], "origin" | "lineage">,
  ) {
    const { platform } = this.#reader.sources;
    const { at, agentId, worktreeId } = author;
    const issue: Issue = {
      ...found.issue,
      ...change.fields,
      updated_at: at,
      updated_by: agentId,
      stamp: {
        ...stamp,
        origin: worktreeId,
        lineage: lineageAfter([found.issue], (text) => platform.digest.sha256(text)),
      },
    };
    const text = encodeIssue(issue);
    const additions = additionsOf(platform, change, found.copy.raw, author);
    const after = (root: string) => {
      const raw = {
        text,
        labels: grown(found.copy.raw.labels, additions, LABELS),
        dependencies: grown(found.copy.raw.dependencies, additions, DEPENDENCIES),
      };
      return resolve(found.id, [copyFrom("worktree", root, raw)], null) as FoundIssue;
    };
    return { issue, text, after, stamp: this.#written(issue, text, additions, author) };
  }

  #written(issue: Issue, text: string, additions: readonly Addition[], author: Author): WrittenStamp {
    return {
      version: issue.stamp.version,
      digest: this.#reader.sources.platform.digest.sha256(text),
      state: issue.state,
      isDeleted: issue.deleted_at !== null,
      worktreeId: author.worktreeId,
      agentId: author.agentId,
      at: author.at,
      additions,
    };
  }

  /** With everything that HEAD has of it, where that is the newest. */
  async #whole(found: FoundIssue): Promise<FoundIssue> {
    const raw = found.copy.root === null ? await this.#reader.committed(found.id) : null;
    return raw === null ? found : { ...found, copy: { ...found.copy, raw } };
  }

  /** An issue that is absent there is copied in first, and what its sets lack is added. */
  async #bringIn(
    folder: IssueFolder,
    { id, copy }: FoundIssue,
    stamp: WrittenStamp | null = null,
  ): Promise<void> {
    if (copy.root === folder.root) return;
    const source = copy.root === null ? null : new IssueFolder(this.#reader.sources.platform, copy.root);
    const texts: [AppendOnly, string][] = [
      [LABELS, copy.raw.labels],
      [DEPENDENCIES, copy.raw.dependencies],
      [COMMENTS, (await source?.lines(id, COMMENTS)) ?? copy.raw.comments ?? ""],
      [RESULTS, (await source?.lines(id, RESULTS)) ?? copy.raw.results ?? ""],
      // What was logged there and not carried out yet.
      [RESULTS, linesFor(RESULTS, stamp)],
    ];
    if ((await folder.read(id)) === null) await folder.bringIn(id, copy.raw.text);
    for (const [file, text] of texts) if (text.trim() !== "") await folder.add(id, file, linesOf(text));
  }

  // --- new ones -------------------------------------------------------------------------------------------

  async #createSome(drafts: readonly Draft[], requestId: Ulid | null): Promise<Issue[]> {
    const folder = this.#reader.here;
    const author = { ...this.#author(null), at: drafts[0]?.issue.created_at ?? this.#now() };
    const prepare = async (sequence: number | null) => {
      const plans = drafts.map((draft) => this.#draft(draft, author, sequence));
      await folder.stageAll(plans.map(({ issue, text }) => ({ id: issue.id, text })));
      return plans;
    };
    if (this.#session === null) {
      const plans = await prepare(null);
      const writes = plans.map(loggedWrite);
      await folder.carryOutAll(writes);
      await folder.settleAll(writes);
      return plans.map(({ issue }) => issue);
    }
    const written = await this.#session.write<Issue[]>([], {
      about: `new issues: ${drafts
        .map(({ issue }) => issue.title)
        .join(", ")
        .slice(0, 200)}`,
      facts: [],
      requestId,
      body: async ({ sequence }) => {
        const plans = await prepare(sequence);
        const writes = plans.map(loggedWrite);
        return {
          type: "issue.written",
          payload: { issue_ids: plans.map(({ issue }) => issue.id), version: 1, created: true },
          facts: new Map(plans.map(({ issue, stamp }) => [stampName(issue.id), stampToFact(stamp)])),
          carryOut: () => folder.carryOutAll(writes),
          settle: () => folder.settleAll(writes),
          answer: plans.map(({ issue }) => issue),
          result: { issue_ids: plans.map(({ issue }) => issue.id) },
        };
      },
    });
    if (!written.replayed) return written.answer ?? [];
    const ids = written.record.result?.["issue_ids"];
    const made: Issue[] = [];
    for (const id of Array.isArray(ids) ? ids : [])
      made.push((await this.#reader.get(trusted(String(id)))).issue);
    return made;
  }

  #draft({ issue, labels, dependencies }: Draft, author: Author, sequence: number | null) {
    const stamped: Issue = { ...issue, stamp: { ...issue.stamp, origin: author.worktreeId, sequence } };
    const text = encodeIssue(stamped);
    const created = { type: "issue.created", payload: { issue_id: issue.id, title: issue.title } } as const;
    const change: IssueChange = {
      labels: { add: labels, remove: [] },
      dependencies: { add: dependencies, remove: [] },
      events: [created],
    };
    const additions = additionsOf(this.#reader.sources.platform, change, EMPTY, author);
    return { issue: stamped, text, stamp: this.#written(stamped, text, additions, author) };
  }

  // --- who and where --------------------------------------------------------------------------------------

  /** A write lands in the worktree of the lease. */
  async #folderFor(lease: Lease | null): Promise<IssueFolder> {
    const { here, rootOf, platform } = this.#reader.sources;
    if (lease === null || lease.worktreeId === here.worktreeId) return this.#reader.here;
    const root = await rootOf(lease.worktreeId);
    if (root !== null) return new IssueFolder(platform, root);
    throw new CotenantError("E_NOT_FOUND", `the worktree of the claim, ${lease.worktreeId}, is gone`, {
      hint: "release the claim, and take it from a worktree that is there",
      data: { lease_id: lease.leaseId, worktree_id: lease.worktreeId },
    });
  }

  #author(lease: Lease | null): Omit<Author, "at"> {
    const actor = this.#session?.actor;
    return {
      agentId: this.#agentId,
      sessionId: actor?.sessionId ?? "",
      worktreeId: lease?.worktreeId ?? this.#reader.sources.here.worktreeId ?? "",
      leaseId: lease?.leaseId ?? null,
    };
  }

  #now(): string {
    return new Date(this.#reader.sources.platform.clock.wallMs()).toISOString();
  }
}

const EMPTY = { labels: "", dependencies: "" };

function loggedWrite({ issue, stamp }: { issue: Issue; stamp: WrittenStamp }): LoggedWrite {
  return { id: issue.id, digest: stamp.digest, additions: stamp.additions };
}

function keyOf(id: Ulid) {
  const key = issueKey(id);
  if (isRefusal(key)) throw errorFrom(key);
  return key;
}

function readStamp({ facts }: Standing, id: Ulid): WrittenStamp | null {
  const fact = facts.get(stampName(id));
  return fact === undefined ? null : stampFromFact(fact.value);
}

function leaseRequired(id: Ulid, refusal: Refusal): CotenantError {
  if (refusal.code !== "E_NOT_FOUND") return errorFrom(refusal);
  return new CotenantError("E_LEASE_REQUIRED", `issue ${id} can only be changed by whoever has claimed it`, {
    hint: `claim it first: cotenant claim acquire ${id}`,
    data: { issue_id: id, key: `issue:${id}`, setting: "worktree.enforce_leases" },
  });
}

/** PROTOCOL 17: above every copy's. A copy that says it has the last one there is was not written by us. */
function versionAfter(id: Ulid, versions: readonly number[]): number {
  const version = 1 + Math.max(...versions);
  if (isCount(version)) return version;
  throw new CotenantError("E_LIMIT", `issue ${id} has version ${version - 1}, and nothing comes after that`, {
    hint: "nobody's cotenant wrote it: look at who did ('git log' of its issue.json), and take it back there",
    data: { id, version: version - 1 },
  });
}

function aheadWarning({ version, agentId, worktreeId, state }: WrittenStamp): string {
  return `version ${version} (${state}), written by ${agentId} in ${worktreeId}, is in no copy here: if a branch has it, merging that branch brings the two together`;
}

function grown(text: string, additions: readonly Addition[], file: string): string {
  const lines = additions.filter((addition) => addition.file === file).map(({ line }) => line);
  return lines.length === 0 ? text : `${text}\n${lines.join("")}`;
}

function linesFor(file: string, stamp: WrittenStamp | null): string {
  return (stamp?.additions ?? [])
    .filter((addition) => addition.file === file)
    .map(({ line }) => line)
    .join("");
}

function linesOf(text: string): string[] {
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => `${line}\n`);
}
