import { newIssue } from "../../src/features/issues/model";
import { IssueReader } from "../../src/features/issues/reader";
import {
  STAMP_KIND,
  stampFromFact,
  stampId,
  stampName,
  type WrittenStamp,
} from "../../src/features/issues/stamps";
import { type Draft, type Enforcement, IssueWriter } from "../../src/features/issues/writer";
import { makeUlid, type Ulid, type WorktreeId } from "../../src/kernel/ids";
import { nameOf } from "../../src/kernel/keys";
import type { Platform } from "../../src/platform/platform";
import { key, openParty, type Party, type PartyOptions } from "../store/stage";

/** Worktrees of a simulated repository, by id. The first is the main one. */
export const ROOTS: Readonly<Record<string, string>> = {
  "wt:00000001": "/repo",
  "wt:00000002": "/second",
};

/** An agent with the issues of its worktree. */
export interface Clerk extends Party {
  readonly reader: IssueReader;
  readonly writer: IssueWriter;
  draft(title: string, more?: Partial<Draft>): Draft;
  create(title: string, more?: Partial<Draft>): Promise<Ulid>;
}

export function openClerk(
  platform: Platform,
  agent: string,
  options: PartyOptions & { enforcement?: Enforcement } = {},
): Clerk {
  const { enforcement = "strict", ...rest } = options;
  const party = openParty(platform, agent, rest);
  const { coordinator, actor, session } = party;
  const reader = new IssueReader({
    platform,
    git: null,
    here: { root: ROOTS[actor.worktreeId]!, worktreeId: actor.worktreeId as WorktreeId },
    mainRoot: ROOTS["wt:00000001"]!,
    rootOf: async (id) => ROOTS[id] ?? null,
    stamps: async (ids) => {
      const filter = ids === null ? { kinds: [STAMP_KIND] } : { names: ids.map(stampName) };
      const stamps = new Map<Ulid, WrittenStamp>();
      for (const [name, { value }] of await coordinator.facts(filter)) {
        const stamp = stampFromFact(value);
        if (stamp !== null) stamps.set(stampId(name)!, stamp);
      }
      return stamps;
    },
    stampNews: async () => ({ stamps: new Map(), isAll: true, position: null, lines: 0 }),
    commit: async () => null,
    cache: null,
    holders: async () => {
      const held = await coordinator.list();
      return new Map(held.map(({ lease }) => [nameOf(lease.key) as Ulid, lease.worktreeId as string]));
    },
  });
  const writer = new IssueWriter(reader, session, enforcement, actor.agentId);
  const draft = (title: string, more: Partial<Draft> = {}): Draft => {
    const at = new Date(platform.clock.wallMs()).toISOString();
    const id = makeUlid(platform.clock.wallMs(), platform.random.bytes(10));
    const stamp = { version: 1, origin: "", lease_id: null, fencing_token: null, sequence: null };
    const issue = newIssue({ id, title, created_at: at, created_by: agent, stamp, ...more.issue });
    return { issue, labels: more.labels ?? [], dependencies: more.dependencies ?? [] };
  };
  const create = async (title: string, more: Partial<Draft> = {}) => {
    const [issue] = await writer.create([draft(title, more)]);
    return issue!.id;
  };
  return { ...party, reader, writer, draft, create };
}

export function issueName(id: Ulid): string {
  return key(`issue:${id}`);
}
