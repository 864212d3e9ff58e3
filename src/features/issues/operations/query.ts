import { workersIn } from "../../ledger/workers";
import { type AbandonedMap, abandonedAmong } from "../../snapshots/abandoned-work";
import type { IssueRow } from "../board";
import type { Desk } from "../desk";
import { NO_WORKERS, type Workers } from "../effective";
import {
  type Answer,
  type Blocked,
  type Filter,
  type FilterRequest,
  filterOf,
  HeldFiles,
  isFiltered,
  type QuerySetting,
  queryAll,
  queryAvailable,
  queryBlocked,
  queryClosed,
  typesOf,
  whyUnavailable,
} from "../query";

/** What queries are answered from, with where the work is that somebody has left unfinished. */
export interface Setting extends QuerySetting {
  /** Of those among the rows that are abandoned. */
  abandonedAmong(rows: readonly IssueRow[]): Promise<AbandonedMap>;
}

/** An answer with what lists show besides. */
export type Listed<A extends Answer = Answer> = A & {
  readonly workers: Workers;
  readonly abandoned: AbandonedMap;
};

export interface AvailableRequest extends Omit<FilterRequest, "states"> {
  /** Leave out those whose declared files somebody else holds. */
  readonly freeFiles?: boolean;
}

export const query = {
  /** Those of this worktree; with any filter, those of all worktrees and of HEAD, each from its newest copy. */
  all(desk: Desk, request: FilterRequest = {}): Promise<Listed> {
    return listing(desk, request, (setting, filter) =>
      queryAll(setting, filter, isFiltered(filter) ? "everywhere" : "here"),
    );
  },

  /** What can be worked on now. */
  available(desk: Desk, request: AvailableRequest = {}): Promise<Listed> {
    return listing(desk, request, async (setting, filter) =>
      queryAvailable(setting, filter, await heldFiles(desk, request)),
    );
  },

  /** What waits for other issues, or for gates, and for which. */
  blocked(desk: Desk, request: FilterRequest = {}): Promise<Listed<Blocked>> {
    return listing(desk, request, queryBlocked);
  },

  /** Of the types in `types.strategic`. */
  strategic(desk: Desk, request: FilterRequest = {}) {
    const types = desk.workspace?.config.values["types.strategic"] ?? ["milestone", "epic"];
    const isStrategic = ({ labels }: IssueRow) => typesOf(labels).some((type) => types.includes(type));
    return listing(desk, request, async (setting, filter) => ({
      ...(await queryAll(setting, filter, "everywhere", isStrategic)),
      types,
    }));
  },

  /** What is done, rejected or archived, in whichever worktree. */
  closed(desk: Desk, request: FilterRequest = {}): Promise<Listed> {
    return listing(desk, request, queryClosed);
  },
};

/** What a query of issues finds, by what somebody asks for. */
export async function listing<A extends Answer>(
  desk: Desk,
  request: FilterRequest,
  find: (setting: Setting, filter: Filter) => Promise<A>,
): Promise<Listed<A>> {
  const filter = filterOf(request);
  const setting = await settingAt(desk);
  return listed(setting, await find(setting, filter));
}

export async function settingAt({ reader, workspace }: Desk): Promise<Setting> {
  if (workspace === null)
    return { reader, hierarchy: [], ...NO_WORKERS, abandonedAmong: async () => new Map() };
  const workers = await workersIn(workspace);
  return {
    reader,
    hierarchy: workspace.config.values["types.hierarchy"],
    ...workers,
    abandonedAmong: (rows) => abandonedAmong(workspace, reader, workers, rows),
  };
}

export async function listed<A extends Answer>(setting: Setting, answer: A): Promise<Listed<A>> {
  return { ...answer, workers: setting, abandoned: await setting.abandonedAmong(answer.issues) };
}

/** What others hold, where that matters. */
export async function heldFiles(
  { reader, workspace }: Desk,
  { freeFiles = false }: AvailableRequest,
): Promise<HeldFiles | null> {
  const { worktreeId } = reader.sources.here;
  if (!freeFiles || workspace === null || worktreeId === null) return null;
  return new HeldFiles(await workspace.coordinator.list(), await workspace.actorOrNull(), worktreeId);
}

/** What to look at where nothing is available, by what is so. */
export async function whereToLook(desk: Desk, request: AvailableRequest): Promise<string> {
  const held = await heldFiles(desk, request);
  const { isBlocked, isClaimed, isHeld } = await whyUnavailable(
    await settingAt(desk),
    filterOf(request),
    held,
  );
  const isShared = (desk.workspace?.config.values["sync.ledger_branch"] ?? null) !== null;
  const ways = [
    ...(isBlocked ? ["'cotenant query blocked' shows what waits for something"] : []),
    ...(isClaimed ? ["'cotenant claim status' shows who works on what"] : []),
    ...(isHeld ? ["'cotenant lock status' shows who holds the files"] : []),
    ...(isShared ? ["'cotenant sync' brings what other machines have"] : []),
  ];
  return ways.length === 0 ? "'cotenant query all' shows what there is" : ways.join("; ");
}
