import type { Session } from "../../../coordinator/session";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { isWithinReach } from "../../../kernel/bounds";
import type { FactName } from "../../../kernel/facts";
import type { Ulid } from "../../../kernel/ids";
import { type Trailer, trailerLines } from "../../hooks/trailers";
import { decodeIssue, type Issue } from "../../issues/model";
import { COMMENTS, stampFromFact, stampName } from "../../issues/stamps";
import { recordAt } from "../claim-attempt";
import { blobsOf, commitFiles, treeOf } from "../commit";
import type { OpenLedger } from "../open";
import { isDeclined } from "../push-answer";
import { backoffMs, lapse } from "../rules";
import { decodeTokens, encodeTokens, TOKENS_PATH } from "../tokens";
import { applyHere } from "./apply";
import { baseFact, baseName, nextBase, readBase, type SyncBase } from "./base";
import { DataHere, versionsIn } from "./here";
import { DATA_PATHS, issuePath, largestBytes, parseDataPath, versionsUpTo } from "./paths";
import { type Contents, differing, type IssueWrite, type Plan, planSync, type ThreeBlobs } from "./plan";

export interface SyncResult {
  readonly head: string;
  readonly pushed: readonly Ulid[];
  readonly written: readonly Ulid[];
  /** Not overwritten: somebody's own change, which is nowhere else. */
  readonly kept: readonly Ulid[];
  readonly contradictions: Plan["contradictions"];
  readonly unreadable: Plan["unreadable"];
  readonly retries: number;
}

interface NotTaken {
  readonly why: string;
  /** Trying again would change nothing. */
  readonly isFinal: boolean;
}

type Pushed = { readonly head: string } | NotTaken;

/** One merge of a worktree's data with the branch: what changed here, what changed there, what was last common. */
export class DataSync {
  readonly #here: DataHere;

  /** `only`: which issues are brought into this worktree; all others stay here as they are. Null: every one. */
  constructor(
    private readonly open: OpenLedger,
    private readonly workspace: Workspace,
    private readonly session: Session,
    private readonly only: ReadonlySet<Ulid> | null = null,
  ) {
    this.#here = new DataHere(workspace, open.copy);
  }

  async run(): Promise<SyncResult> {
    const { ledger, remote } = this.open;
    let firstTip: string | null = null;
    for (let retries = 0; ; retries++) {
      const tip = await remote.attach();
      firstTip ??= tip;
      const known = await readBase(this.workspace.coordinator, this.session.actor.worktreeId);
      const base = await this.#present(known, tip);
      const scene = await this.#look(tip, base);
      const merged = planSync(scene.files, scene.contents, (text) => this.#sha256(text));
      const passedOver = [
        ...this.#passedOver(scene.tooLarge),
        ...(await this.#others(merged, scene.contents)),
      ];
      const plan = { ...without(merged, passedOver), unreadable: [...merged.unreadable, ...passedOver] };
      const pushed = await this.#push(plan, tip, scene.there);
      if ("head" in pushed) {
        const { head } = pushed;
        return { ...(await this.#write(plan, scene, base, head)), head, retries };
      }
      if (pushed.isFinal || retries >= ledger.parts.retries)
        throw this.#notTaken(pushed, tip === firstTip, retries);
      await ledger.pause(backoffMs(retries, ledger.chance()));
    }
  }

  /** Of the branch's issues those that are chosen, all of which are missing here. */
  async bring(choose: (there: readonly Ulid[]) => readonly Ulid[]): Promise<readonly Ulid[]> {
    const { remote, copy } = this.open;
    const tip = await remote.attach();
    const there = await treeOf(copy, tip, DATA_PATHS);
    const chosen = new Set<Ulid | null>(choose(issuesAmong([...there.keys()])));
    if (chosen.size === 0) return [];
    const theirs = [...there].filter(([path]) => chosen.has(parseDataPath(path)?.id ?? null));
    const all = differing(new Map(), new Map(theirs), () => null);
    const tooLarge = new Set(await this.#tooLarge(all));
    const files = all.filter(({ path }) => !tooLarge.has(path));
    const plan = planSync(files, await this.#contents(files), (text) => this.#sha256(text));
    const { platform } = this.workspace.surroundings;
    const { written } = await applyHere(this.session, platform, this.#here.root, plan.here, []);
    return written;
  }

  // --- what is where --------------------------------------------------------------------------------------

  /** A base that this machine does not have any more, or that is no part of the ledger, is none. */
  async #present(base: SyncBase | null, tip: string): Promise<SyncBase | null> {
    if (base === null) return null;
    const { status } = await this.open.copy.run(["merge-base", "--is-ancestor", base.commit, tip]);
    return status === 0 ? base : null;
  }

  async #look(tip: string, base: SyncBase | null) {
    const { copy } = this.open;
    const { blobs: here, large } = await this.#here.blobs();
    const there = await treeOf(copy, tip, [...DATA_PATHS, TOKENS_PATH]);
    const trees = new Map<string, ReadonlyMap<string, string>>();
    for (const commit of new Set([base?.commit, ...Object.values(base?.kept ?? {})]))
      if (commit !== undefined) trees.set(commit, await this.#treeOrNothing(commit));
    const history = base === null ? await this.#history(tip) : null;
    const own = history === null ? null : await this.#here.versions();
    const baseOf = (path: string): string | null => {
      if (history !== null)
        return baseInHistory(history.get(path), here.get(path) ?? null, own!.get(path) ?? []);
      const parsed = parseDataPath(path);
      const commit = (parsed?.id != null ? base!.kept[parsed.id] : undefined) ?? base!.commit;
      return trees.get(commit)?.get(path) ?? null;
    };
    const all = differing(here, there, baseOf);
    const tooLarge = new Set([...large, ...(await this.#tooLarge(all))]);
    const files = all.filter(({ path }) => !tooLarge.has(path));
    const isOnBranch = (path: string, oid: string) =>
      history?.get(path)?.has(oid) === true || [...trees.values()].some((tree) => tree.get(path) === oid);
    return { files, there, contents: await this.#contents(files), isOnBranch, tooLarge: [...tooLarge] };
  }

  /** PROTOCOL 26a: of the branch's files only the sizes are asked before anything of them is read. */
  async #tooLarge(files: readonly ThreeBlobs[]): Promise<string[]> {
    const there = files.flatMap(({ path, there: oid }) => (oid === null ? [] : [{ path, oid }]));
    if (there.length === 0) return [];
    const asked = there.map(({ oid }) => `${oid}\n`).join("");
    const sizes = (await this.open.copy.text(["cat-file", "--batch-check=%(objectsize)"], asked)).split("\n");
    return there
      .filter(({ path }, i) => !(Number(sizes[i]) <= largestBytes(parseDataPath(path)!)))
      .map(({ path }) => path);
  }

  #passedOver(paths: readonly string[]): Plan["unreadable"] {
    return paths.flatMap((path) => {
      const id = parseDataPath(path)?.id ?? null;
      if (id !== null) return [{ id, why: `${path} is too large` }];
      this.workspace.warnings.push(`${path} is too large: it was neither sent nor received`);
      return [];
    });
  }

  /**
   * Changes of issues that another clone has claimed and that were not written under that claim: by hand, or by a merge of
   * one's own. Whoever has the claim would get them without a word.
   */
  async #others({ branch }: Plan, { here, there }: Contents): Promise<Plan["unreadable"]> {
    const ids = issuesAmong([...branch.keys()].filter((path) => !path.endsWith(`/${COMMENTS}`)));
    if (ids.length === 0) return [];
    const { ledger, remote } = this.open;
    const cloneId = await ledger.cloneId(this.session.actor);
    const claims = await remote.seen(ids);
    const facts = await this.workspace.coordinator.facts({ names: ids.map(stampName) });
    return ids.flatMap((id) => {
      const record = recordAt(claims.get(id));
      if (record === null || !record.isHeld || record.cloneId === cloneId) return [];
      if (lapse(record, ledger.nowMs, ledger.parts.rules) !== null) return [];
      const text = here(issuePath(id));
      const fact = facts.get(stampName(id))?.value;
      const isWritten =
        text !== null && fact !== undefined && stampFromFact(fact)?.digest === this.#sha256(text);
      const [mine, theirs] = [stampIn(text), stampIn(there(issuePath(id)))];
      const isTheirs = mine?.lease_id === record.leaseId && mine.version > (theirs?.version ?? 0);
      if (isWritten || isTheirs) return [];
      return [
        {
          id,
          why: `${record.agentId} has claimed it, and what changed here was not written under that claim; it is sent once the claim is over`,
        },
      ];
    });
  }

  async #treeOrNothing(commit: string): Promise<ReadonlyMap<string, string>> {
    try {
      return await treeOf(this.open.copy, commit, DATA_PATHS);
    } catch {
      return new Map();
    }
  }

  /** Every version that the branch ever had of each file, for a worktree that has never been merged with it. */
  async #history(tip: string): Promise<Map<string, Set<string>>> {
    const text = await this.open.copy.text(versionsUpTo(tip));
    return new Map([...versionsIn(text)].map(([path, oids]) => [path, new Set(oids)]));
  }

  async #contents(files: readonly ThreeBlobs[]): Promise<Contents> {
    const { copy } = this.open;
    const here = new Map<string, string>();
    for (const { path, here: oid } of files) {
      const text = oid === null ? null : await this.#here.read(path);
      if (text !== null) here.set(path, text);
    }
    const wanted = files.flatMap(({ base, there }) => [base, there]).filter((oid) => oid !== null);
    const oids = [...new Set(wanted)];
    const blobs = await blobsOf(async (args, input) => {
      const { stdout } = await copy.run(args, input);
      return stdout;
    }, oids);
    const byPath = new Map(files.map((file) => [file.path, file]));
    const decoded = (oid: string | null | undefined) => {
      const bytes = oid == null ? undefined : blobs.get(oid);
      return bytes === undefined ? null : new TextDecoder().decode(bytes);
    };
    return {
      here: (path) => here.get(path) ?? null,
      there: (path) => decoded(byPath.get(path)?.there),
      // Without a base of its own, one that equals what is here: then nothing changed here.
      base: (path) => {
        const file = byPath.get(path);
        return file?.base != null && file.base === file.here ? (here.get(path) ?? null) : decoded(file?.base);
      },
    };
  }

  // --- there ----------------------------------------------------------------------------------------------

  /** The branch's new commit; the old one where there was nothing to say; else why it was not taken. */
  async #push({ branch }: Plan, tip: string, there: ReadonlyMap<string, string>): Promise<Pushed> {
    const { copy, remote } = this.open;
    const files = new Map([...branch].map(([path, text]) => [path, new TextEncoder().encode(text)]));
    if (files.size > 0) await this.#addTokens(files, there);
    if (files.size === 0) return { head: tip };
    const { agentId, worktreeId } = this.session.actor;
    const issues = issuesAmong([...branch.keys()]);
    const claims = trailerLines({ agentId, worktreeId, issues: await this.#claims(issues, branch) });
    const subject = `Sync ${issues.length} ${issues.length === 1 ? "issue" : "issues"} from ${agentId}\n`;
    const message = claims.length === 0 ? subject : `${subject}\n${claims.join("\n")}\n`;
    const commit = await commitFiles(copy, { parent: tip, files, message, author: agentId });
    const ref = `refs/heads/${remote.branch}`;
    const answer = await remote.send([`--force-with-lease=${ref}:${tip}`], [`${commit}:${ref}`]);
    const outcome = answer.of(ref, commit);
    if (outcome.kind === "done") {
      await remote.noteBranch(commit);
      return { head: commit };
    }
    // Whether it arrived without an answer, the next look shows: what is there already is not pushed again.
    return { why: outcome.why, isFinal: outcome.kind === "rejected" && isDeclined(outcome.why) };
  }

  /** On which claims the changes rest, as the issues themselves say: for whoever judges what comes to the branch. */
  async #claims(ids: readonly Ulid[], sent: ReadonlyMap<string, string>): Promise<Trailer[]> {
    const claims: Trailer[] = [];
    for (const id of ids) {
      const text = sent.get(issuePath(id)) ?? (await this.#here.read(issuePath(id)));
      const { lease_id: leaseId = null, fencing_token: token = null } = stampIn(text) ?? {};
      if (leaseId !== null) claims.push({ issueId: id, leaseId, token });
    }
    return claims;
  }

  #notTaken({ why }: NotTaken, isUnmoved: boolean, retries: number): CotenantError {
    const { transport } = this.open.copy;
    const { branch } = this.open.remote;
    if (!isUnmoved)
      return new CotenantError(
        "E_RETRIES_EXHAUSTED",
        "others changed the ledger's branch faster than we could",
        {
          data: { retries },
        },
      );
    return new CotenantError(
      "E_PUSH_REJECTED",
      `${transport.remote} did not take what changed here, on ${branch}: ${why}`,
      {
        hint: "see what the remote says against it; everything is still here, and 'cotenant sync' tries again",
        data: { remote: transport.remote, branch, retries },
      },
    );
  }

  /** PROTOCOL 26: the highest token that was ever heard of, for whoever finds claims gone. */
  async #addTokens(files: Map<string, Uint8Array>, there: ReadonlyMap<string, string>): Promise<void> {
    const { ledger, remote } = this.open;
    const here = Math.max(await ledger.parts.local.highestToken(), await ledger.tokenFloor());
    const highest = await remote.highestToken(here);
    const oid = there.get(TOKENS_PATH) ?? null;
    const { stdout } = await this.open.copy.run(["cat-file", "blob", oid ?? "0"]);
    const written = oid === null ? null : decodeTokens(stdout);
    // One that nobody can have given out is put right.
    if (written === null || highest > written || !isWithinReach(written, highest))
      files.set(TOKENS_PATH, encodeTokens(highest));
  }

  // --- here -----------------------------------------------------------------------------------------------

  async #write(
    plan: Plan,
    scene: { files: readonly ThreeBlobs[]; isOnBranch: (path: string, oid: string) => boolean },
    base: SyncBase | null,
    head: string,
  ): Promise<Omit<SyncResult, "head" | "retries">> {
    const { platform } = this.workspace.surroundings;
    const isWanted = ({ id }: IssueWrite) => this.only?.has(id) ?? true;
    const left = plan.here.filter((write) => !isWanted(write)).map(({ id }) => id);
    const { mine, kept } = await this.#sortOut(plan.here.filter(isWanted), scene.isOnBranch);
    // Events of other issues would only be in the way of whoever commits this one.
    const events = this.only === null ? plan.events : [];
    const { written, moved } = await applyHere(this.session, platform, this.#here.root, mine, events);
    const stuck = [...left, ...kept, ...moved, ...plan.unreadable.map(({ id }) => id)];
    const next = nextBase(base, head, stuck);
    if (next !== null && JSON.stringify(next) !== JSON.stringify(base)) await this.#noteBase(next);
    return {
      pushed: issuesAmong([...plan.branch.keys()]),
      written,
      kept,
      contradictions: plan.contradictions,
      unreadable: plan.unreadable,
    };
  }

  async #noteBase(base: SyncBase): Promise<void> {
    const name: FactName = baseName(this.session.actor.worktreeId);
    await this.session.write([], {
      about: "what was last common with the ledger",
      facts: [],
      body: async () => ({
        type: "sync.merged",
        payload: { commit: base.commit },
        facts: new Map([[name, baseFact(base)]]),
        answer: true,
      }),
    });
  }

  /** What exists nowhere else is not overwritten: neither in HEAD, nor on the branch, nor written by cotenant itself. */
  async #sortOut(
    writes: readonly IssueWrite[],
    isOnBranch: (path: string, oid: string) => boolean,
  ): Promise<{ mine: IssueWrite[]; kept: Ulid[] }> {
    const committed = await this.#here.committed();
    const facts = await this.workspace.coordinator.facts({ names: writes.map(({ id }) => stampName(id)) });
    const kept: Ulid[] = [];
    const mine = writes.map((write) => {
      const { id, text } = write;
      if (text === null || text.expected === null || text.oid === null) return write;
      const fact = facts.get(stampName(id))?.value;
      const stamp = fact === undefined ? null : stampFromFact(fact);
      const isSafe =
        committed.get(issuePath(id)) === text.oid ||
        isOnBranch(issuePath(id), text.oid) ||
        stamp?.digest === this.#sha256(text.expected);
      if (isSafe) return write;
      kept.push(id);
      return { ...write, text: null };
    });
    return { mine: mine.filter(({ text, lines }) => text !== null || lines.length > 0), kept };
  }

  #sha256(text: string): string {
    return this.workspace.surroundings.platform.digest.sha256(text);
  }
}

function stampIn(text: string | null): Issue["stamp"] | null {
  const reading = text === null ? null : decodeIssue(text);
  return reading !== null && "issue" in reading ? reading.issue.stamp : null;
}

/** Neither sent nor received. */
function without(plan: Plan, passedOver: Plan["unreadable"]): Plan {
  const ids = new Set<string | null>(passedOver.map(({ id }) => id));
  if (ids.size === 0) return plan;
  return {
    ...plan,
    branch: new Map([...plan.branch].filter(([path]) => !ids.has(parseDataPath(path)?.id ?? null))),
    here: plan.here.filter(({ id }) => !ids.has(id)),
    contradictions: plan.contradictions.filter(({ id }) => !ids.has(id)),
  };
}

/**
 * For a worktree that was never merged with the branch: what it has, if the branch had that once; else the newest version
 * of its own history that the branch had as well.
 */
function baseInHistory(
  branch: ReadonlySet<string> | undefined,
  here: string | null,
  own: readonly string[],
): string | null {
  if (branch === undefined || here === null) return null;
  return branch.has(here) ? here : (own.find((oid) => branch.has(oid)) ?? null);
}

function issuesAmong(paths: readonly string[]): Ulid[] {
  const ids = paths.map((path) => parseDataPath(path)?.id ?? null).filter((id) => id !== null);
  return [...new Set(ids)];
}
