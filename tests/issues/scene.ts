import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import type { FolderWatcher } from "../../src/coordinator/watched";
import { type Surroundings, Workspace } from "../../src/coordinator/workspace";
import { CommittedIssues } from "../../src/features/issues/committed";
import { issuesIn, writerIn } from "../../src/features/issues/desk";
import { workersOf } from "../../src/features/issues/effective";
import type { IssueFolder } from "../../src/features/issues/folder";
import {
  encodeIssue,
  type Issue,
  newIssue,
  PRIORITIES,
  TERMINAL_STATES,
} from "../../src/features/issues/model";
import { encodeSetLine } from "../../src/features/issues/or-set";
import type { QuerySetting } from "../../src/features/issues/query";
import type { IssueReader } from "../../src/features/issues/reader";
import {
  copyFrom,
  type FoundIssue,
  isFound,
  resolve,
  type UnreadableIssue,
} from "../../src/features/issues/resolve";
import type { WrittenStamp } from "../../src/features/issues/stamps";
import { makeUlid, type Ulid } from "../../src/kernel/ids";
import type { LeaseKey } from "../../src/kernel/keys";
import { nodeGit } from "../../src/platform/git-node";
import { nodePlatform } from "../../src/platform/node/node";
import { NODE_TOOLS } from "../../src/platform/node/this-machine";
import type { Platform } from "../../src/platform/platform";
import { scratch } from "../support/scratch";

export const HIERARCHY = ["epic", "story", "task bug"];

/** A real repository with a second worktree, and issues that anything may happen to. */
export class Scene {
  readonly main = path.join(scratch(), "main");
  readonly other = path.join(path.dirname(this.main), "other");
  /** Caches believe what they have just read, as if they had been made long after. */
  isAged = false;
  /** Somebody who watches, as a daemon does. */
  watcher: FolderWatcher | null = null;
  /** The file system tells whole seconds only. */
  isCoarse = false;
  #made = 0;

  constructor() {
    fs.mkdirSync(this.main);
    this.git("init", "--quiet", "--initial-branch", "main");
    this.git("config", "user.email", "a@example.com");
    this.git("config", "user.name", "a");
    this.git("commit", "--quiet", "--allow-empty", "--message", "first");
    this.git("worktree", "add", "--quiet", "-b", "other", this.other);
  }

  git(...args: string[]): string {
    return execFileSync("git", args, { cwd: this.main, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  }

  /** As a new process would: nothing is remembered but what is on the disk. */
  async open(root = this.main, agentId = "agent:a"): Promise<{ workspace: Workspace; reader: IssueReader }> {
    const surroundings: Surroundings = {
      platform: this.#platform(),
      git: nodeGit({ PATH: process.env["PATH"] }),
      tools: NODE_TOOLS,
      env: { COTENANT_AGENT_ID: agentId, COTENANT_SESSION_ID: "s" },
      cwd: root,
      home: null,
      isTerminal: false,
    };
    const workspace = await Workspace.open(surroundings, { watcher: async () => this.watcher });
    await workspace.worktree("write");
    await workspace.store.prepare();
    return { workspace, reader: await issuesIn(workspace) };
  }

  #platform(): Platform {
    if (this.isCoarse) return coarse(nodePlatform());
    return this.isAged ? aged(nodePlatform()) : nodePlatform();
  }

  async setting(root = this.main): Promise<QuerySetting> {
    const { workspace, reader } = await this.open(root);
    return { reader, hierarchy: HIERARCHY, ...(await workersOf(workspace.coordinator)) };
  }

  async claim(id: Ulid, root: string, agentId: string): Promise<void> {
    const { workspace } = await this.open(root, agentId);
    const session = await workspace.session("write");
    const keys = [{ key: `issue:${id}` as LeaseKey, reach: "repository" as const }];
    await session.acquire(keys, { ttlSecs: 600 });
  }

  async release(id: Ulid, root: string, agentId: string): Promise<void> {
    const { workspace } = await this.open(root, agentId);
    const session = await workspace.session("write");
    await session.release([{ key: `issue:${id}` as LeaseKey, leaseId: null }]);
  }

  /** A write of cotenant's own, stamped in the control plane. */
  async update(id: Ulid, root: string, agentId: string, fields: Partial<Issue>): Promise<void> {
    const { workspace, reader } = await this.open(root, agentId);
    const writer = await writerIn(workspace, reader);
    await writer.update(id, () => ({ fields, events: [] }), { enforcement: "off" });
  }

  /** A new issue by hand, not logged anywhere. */
  make(given: Partial<Issue> = {}, sets: { labels?: string[]; dependencies?: string[] } = {}): Issue {
    const at = 1_700_000_000_000 + 1_000 * this.#made++;
    const randomness = Uint8Array.from({ length: 10 }, (_, i) => (this.#made * 37 + i * 101) & 0xff);
    const issue = newIssue({
      id: makeUlid(at, randomness),
      title: `Number ${this.#made}`,
      created_at: new Date(at).toISOString(),
      created_by: "agent:a",
      stamp: { version: 1, origin: "", lease_id: null, fencing_token: null, sequence: null },
      ...given,
    });
    fs.mkdirSync(this.folder(issue.id), { recursive: true });
    fs.writeFileSync(this.file(issue.id), encodeIssue(issue));
    for (const value of sets.labels ?? []) this.addTo(issue.id, "labels", value);
    for (const value of sets.dependencies ?? []) this.addTo(issue.id, "deps", value);
    return issue;
  }

  addTo(id: Ulid, set: "labels" | "deps", value: string, root = this.main): void {
    const tag = makeUlid(
      Date.now(),
      Uint8Array.from({ length: 10 }, () => Math.floor(Math.random() * 256)),
    );
    const line = encodeSetLine({ op: "add", tag, value, at: "", by: "" });
    fs.appendFileSync(path.join(this.folder(id, root), `${set}.or-set.jsonl`), line);
  }

  folder(id: string, root = this.main): string {
    return path.join(root, ".cotenant/issues", id);
  }

  file(id: string, root = this.main): string {
    return path.join(this.folder(id, root), "issue.json");
  }

  cacheFiles(): string[] {
    const directory = path.join(this.main, ".git/cotenant/cache");
    return fs.existsSync(directory)
      ? fs.readdirSync(directory).map((name) => path.join(directory, name))
      : [];
  }
}

function coarse(platform: Platform): Platform {
  const files = new Proxy(platform.files, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== "function") return value;
      if (name !== "lstatAll") return value.bind(target);
      return (count: number, pathAt: (index: number) => string, into: Float64Array) => {
        target.lstatAll(count, pathAt, into);
        for (let at = 0; at < count * 4; at += 4)
          for (const time of [at + 2, at + 3]) into[time] = Math.floor(into[time]! / 1000) * 1000;
      };
    },
  });
  return { ...platform, files };
}

/** Its monotonic clock runs backwards, so that all that was read seems to have settled long before. */
function aged(platform: Platform): Platform {
  let now = 1e9;
  const { clock } = platform;
  return {
    ...platform,
    clock: {
      wallMs: () => clock.wallMs(),
      monotonicMs: () => {
        now -= 60_000;
        return now;
      },
      clockId: () => clock.clockId(),
    },
  };
}

export interface Seen {
  readonly id: string;
  readonly title: string;
  readonly state: string;
  readonly labels: readonly string[];
  readonly dependencies: readonly string[];
}

export interface Expected {
  readonly all: Seen[];
  readonly available: Seen[];
  readonly blocked: Seen[];
  readonly closed: Seen[];
  readonly broken: string[];
  readonly here: Seen[];
}

/** The same questions answered by reading every copy of every issue, without any cache. */
export async function plainly({ reader, claims, leavers }: QuerySetting): Promise<Expected> {
  // Claimed is in progress; in progress without a claim is left, and ready again.
  const counted = <T extends FoundIssue>(issue: T): T => {
    const { state } = issue;
    if (TERMINAL_STATES.includes(state) || state === "gated") return issue;
    if (claims.has(issue.id)) return { ...issue, state: "in_progress" };
    return state === "in_progress" ? { ...issue, state: "ready" } : issue;
  };
  if (leavers.size > 0) throw new Error("claims of a scene do not lapse");
  const { sources, here, main } = reader;
  const stamps = await sources.stamps(null);
  const committed = new CommittedIssues(sources.git!, here.root);
  const ids = new Set<Ulid>([
    ...(await here.ids()),
    ...((await main?.ids()) ?? []),
    ...(await committed.ids()),
  ]);
  for (const id of [...stamps.keys(), ...claims.keys()]) ids.add(id);
  const found = await reader.findAll([...ids].sort());
  const readable = [...found.values()]
    .filter(isFound)
    .filter(({ isDeleted }) => !isDeleted)
    .map(counted);
  const isOver = (id: string) => isFinished(found.get(id as Ulid) ?? null, stamps.get(id as Ulid));
  const isBlocked = (issue: FoundIssue) => issue.dependencies.some((id) => !isOver(id));
  const isOpen = (issue: FoundIssue) => !TERMINAL_STATES.includes(issue.state);
  const local: FoundIssue[] = [];
  for (const id of await here.ids()) {
    const alone = await onlyHere(here, id);
    if (alone !== null) local.push(counted(alone));
  }
  return {
    all: inOrder(readable),
    available: inOrder(
      readable.filter((issue) => issue.state === "ready" && !claims.has(issue.id) && !isBlocked(issue)),
    ),
    blocked: inOrder(
      readable.filter((issue) => isOpen(issue) && (isBlocked(issue) || issue.state === "gated")),
    ),
    closed: inOrder(readable.filter((issue) => !isOpen(issue))),
    broken: [...found]
      .filter(([id, issue]) => !isFound(issue) && stamps.get(id)?.isDeleted !== true)
      .map(([id]) => id as string)
      .sort(),
    here: inOrder(local),
  };
}

function isFinished(found: FoundIssue | UnreadableIssue | null, stamp: WrittenStamp | undefined): boolean {
  if (isFound(found)) return found.isDeleted || TERMINAL_STATES.includes(found.state);
  return stamp !== undefined && (stamp.isDeleted || TERMINAL_STATES.includes(stamp.state));
}

async function onlyHere(here: IssueFolder, id: Ulid): Promise<FoundIssue | null> {
  const raw = await here.read(id);
  const found = raw === null ? null : resolve(id, [copyFrom("worktree", here.root, raw)], null);
  return isFound(found) && !found.isDeleted ? found : null;
}

function inOrder(issues: readonly FoundIssue[]): Seen[] {
  const rank = ({ labels }: FoundIssue) => {
    const levels = HIERARCHY.map((line) => line.split(" ").map((type) => `type:${type}`));
    const found = levels.findIndex((level) => level.some((label) => labels.includes(label)));
    return found === -1 ? HIERARCHY.length : found;
  };
  const urgency = ({ issue }: FoundIssue) => PRIORITIES.indexOf(issue.priority);
  return [...issues]
    .sort((a, b) => urgency(b) - urgency(a) || rank(a) - rank(b) || (a.id < b.id ? -1 : 1))
    .map(({ id, issue, state, labels, dependencies }) => ({
      id,
      title: issue.title,
      state,
      labels,
      dependencies,
    }));
}
