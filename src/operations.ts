import type { Workspace } from "./coordinator/workspace";
import { CotenantError } from "./errors/cotenant-error";
import type { DispatchRequest } from "./features/dispatch/operations";
import type { Installed } from "./features/installer/files";
import type { HarnessName } from "./identity/harness";
import { printable } from "./kernel/ids";

const doctor = () => import("./features/doctor/operations");
const issues = () => import("./features/issues/operations");
const setup = () => import("./features/setup/operations");

/** Every operation, by the words of its command; its code is loaded when it is called. */
export const OPERATIONS = {
  init: async () => (await setup()).init,
  deinit: async () => (await setup()).deinit,
  status: async () => (await import("./features/watch/operations")).status,
  events: async () => (await import("./features/watch/operations")).events,
  stats: async () => (await import("./features/watch/operations")).stats,
  info: async () => {
    const { info } = await import("./features/watch/operations");
    return ({ surroundings }: Workspace) => info(surroundings);
  },
  pause: async () => (await import("./features/locks/operations")).pause,
  resume: async () => (await import("./features/locks/operations")).resume,
  claim: async () => (await import("./features/claims/operations")).claim,
  sync: async () => (await import("./features/ledger/operations")).sync,
  lock: async () => (await import("./features/locks/operations")).lock,
  worktree: async () => (await import("./features/worktrees/operations")).worktree,
  snapshot: async () => (await import("./features/snapshots/operations")).snapshot,
  history: async () => (await import("./features/snapshots/operations")).history,
  restore: async () => (await import("./features/snapshots/operations")).restore,
  issue: async () => onDesk((await issues()).issue),
  dep: async () => onDesk((await issues()).dep),
  label: async () => onDesk((await issues()).label),
  doc: async () => onDesk((await issues()).doc),
  query: async () => onDesk((await issues()).query),
  graph: async () => onDesk((await issues()).graph),
  search: async () => {
    const { search } = await issues();
    const { nodeRunWithin: runWithin } = await import("./platform/node/run-within");
    return onDesk({ search }, async () => ({ runWithin })).search;
  },
  gate: async () => {
    const { gate } = await import("./features/gates/operations");
    return onDesk(gate, async ({ surroundings }) => ({ commands: await surroundings.tools.commands() }));
  },
  config: async () => {
    const { oneSetting, resetSetting, setSetting, shownSettings, survey, validateSettings } = await setup();
    return {
      /** A section or a key; everything, where none is named. */
      show: ({ surroundings }: Workspace, { key }: { readonly key?: string } = {}) =>
        shownSettings(surroundings, key),
      get: ({ surroundings }: Workspace, { key }: { readonly key: string }) => oneSetting(surroundings, key),
      set: (workspace: Workspace, request: Parameters<typeof setSetting>[1]) =>
        setSetting(whereabouts(workspace), request),
      reset: (workspace: Workspace, request: Parameters<typeof resetSetting>[1]) =>
        resetSetting(whereabouts(workspace), request),
      showHierarchy: ({ surroundings }: Workspace) => survey(surroundings),
      validate: (
        { surroundings }: Workspace,
        { onProblem = () => {} }: { readonly onProblem?: (words: string) => void } = {},
      ) => validateSettings(surroundings, onProblem),
    };
  },
  trust: async () => (await setup()).trust,
  daemon: async () => (await import("./daemon/operations")).daemon,
  validate: async () => {
    const { validate } = await doctor();
    const { validateCommits } = await import("./features/hooks/answers/push");
    return {
      leases: ({ surroundings }: Workspace) => validate(surroundings, "leases"),
      config: ({ surroundings }: Workspace) => validate(surroundings, "config"),
      divergence: ({ surroundings }: Workspace) => validate(surroundings, "divergence"),
      all: ({ surroundings }: Workspace) => validate(surroundings, "all"),
      commits: (workspace: Workspace, { range }: { readonly range: string }) =>
        validateCommits(whereabouts(workspace), range),
    };
  },
  guard: async () => {
    const guard = await import("./features/guard/operations");
    const { worldOf } = await import("./features/guard/entry/world-of");
    const world = ({ surroundings }: Workspace) => worldOf(surroundings, process.pid);
    return {
      check: (workspace: Workspace, request: Parameters<typeof guard.checkPaths>[2]) =>
        guard.checkPaths(workspace, world(workspace), request),
      stop: async (workspace: Workspace) =>
        guard.stopSession(await guard.ownWorktree(workspace, world(workspace))),
      end: async (workspace: Workspace, { failed = false }: { readonly failed?: boolean } = {}) =>
        guard.endSession(await guard.ownWorktree(workspace, world(workspace)), failed ? "failed" : "ended"),
      status: guard.guardStatus,
      report: guard.blockedContentions,
      /** Of these paths, or of all that are blocked. */
      retry: (workspace: Workspace, { paths = [] }: { readonly paths?: readonly string[] } = {}) =>
        guard.retryBlocked(workspace, world(workspace), paths),
      settle: (workspace: Workspace, { violations }: { readonly violations: readonly string[] | "all" }) =>
        guard.settleSeenViolations(workspace, violations),
    };
  },
  hooks: async () => {
    const { hooksOf, hooksStatus, installHooks, uninstallHooks } = await import(
      "./features/hooks/operations"
    );
    return {
      install: async (workspace: Workspace, request: Parameters<typeof installHooks>[1]) =>
        installHooks(await hooksOf(workspace), request),
      uninstall: async (workspace: Workspace, request: Parameters<typeof uninstallHooks>[1]) =>
        uninstallHooks(await hooksOf(workspace), request),
      status: async (workspace: Workspace, request: Parameters<typeof hooksStatus>[1]) =>
        hooksStatus(await hooksOf(workspace), request),
    };
  },
  agent: async () => {
    const agents = await import("./features/harnesses/operations");
    const { chooseWay, guardDaemon, guardPlaceIn, settleDoor } = await import("./daemon/guard-way");
    const { HARNESS_NAMES } = await import("./identity/harness");
    const around = (workspace: Workspace) => ({ surroundings: workspace.surroundings, workspace });
    return {
      install: async (workspace: Workspace, request: AgentInstall) => {
        const { harnesses, via = "program", shared = false, print: isDry = false, program } = request;
        const desk = agents.projectLevel(workspace);
        const wish = { way: via, shared, program: program.program };
        const way = await chooseWay(desk, harnesses, wish);
        const added = await agents.addAgents(desk, harnesses, { way, isDry, shared, program });
        if (!isDry) await settleDoor(desk);
        return added;
      },
      uninstall: async (
        workspace: Workspace,
        {
          harnesses,
          shared = false,
        }: { readonly harnesses: readonly HarnessName[]; readonly shared?: boolean },
      ) => {
        const desk = agents.projectLevel(workspace);
        const removed = await agents.takeOutAgents(desk, harnesses, shared);
        await settleDoor(desk);
        return removed;
      },
      list: (
        workspace: Workspace,
        { harnesses = HARNESS_NAMES }: { readonly harnesses?: readonly HarnessName[] } = {},
      ) => agents.listAgents(around(workspace), harnesses, guardPlaceIn(workspace)),
      doctor: async (workspace: Workspace, request: AgentDoctor) => {
        const { harnesses = HARNESS_NAMES, canary = false, program } = request;
        const { runCanary } = await import("./features/harnesses/real-canary/played-session");
        const { git } = workspace.surroundings;
        return agents.examineAgents(around(workspace), {
          harnesses,
          areNamed: request.harnesses !== undefined,
          hookBase: guardPlaceIn(workspace),
          trying: canary
            ? {
                fly: (one, env) => runCanary(one, { program: program.program, git, env }),
                daemon: () => guardDaemon(workspace),
              }
            : null,
          program,
          tryReal: null,
        });
      },
    };
  },
  publish: async () => (await import("./features/publish/operations")).publish,
  land: async () => (await import("./features/land/operations")).land,
  dispatch: async () => {
    const { dispatch } = await import("./features/dispatch/operations");
    const run = async (
      workspace: Workspace,
      { program = null, ...request }: DispatchRequest & { readonly program?: Installed | null },
    ) => {
      const { dispatchParts } = await import("./node-parts");
      return dispatch(await dispatchParts(workspace, await workspace.session("write"), program), request);
    };
    return Object.assign(run, { status: dispatch.status, logs: dispatch.logs, stop: dispatch.stop });
  },
  exec: async () => (await import("./features/exec/operations")).exec,
  doctor: async () => {
    const { diagnosis } = await doctor();
    return ({ surroundings }: Workspace, { strict = false }: { readonly strict?: boolean } = {}) =>
      diagnosis(surroundings, strict);
  },
  recover: async () => (await doctor()).recoverLog,
  gc: async () => (await doctor()).gc,
};

export interface AgentInstall {
  readonly harnesses: readonly HarnessName[];
  readonly via?: string;
  /** In settings that are committed. */
  readonly shared?: boolean;
  /** Only says what would be written. */
  readonly print?: boolean;
  /** What the settings are to start. */
  readonly program: Installed;
}

export interface AgentDoctor {
  readonly harnesses?: readonly HarnessName[];
  /** Plays a session through what is installed; else only the settings are looked at. */
  readonly canary?: boolean;
  readonly program: Installed;
}

function whereabouts(workspace: Workspace) {
  return { surroundings: () => workspace.surroundings, workspace: async () => workspace };
}

/** Operations on issues work outside Git as well, so they take a desk; a program has one in its repository. */
type OnDesk<Group> = {
  readonly [Verb in keyof Group]: Group[Verb] extends (desk: never, ...request: infer Request) => infer Value
    ? (workspace: Workspace, ...request: Request) => Promise<Awaited<Value>>
    : never;
};

/** `more`: what the group needs besides. */
function onDesk<Group extends object>(
  group: Group,
  more: (workspace: Workspace) => Promise<object> = async () => ({}),
): OnDesk<Group> {
  const onOne =
    (operation: (...given: unknown[]) => unknown) =>
    async (workspace: Workspace, ...request: unknown[]) => {
      const { deskIn } = await import("./features/issues/desk");
      return operation({ ...(await deskIn(workspace)), ...(await more(workspace)) }, ...request);
    };
  return Object.fromEntries(
    Object.entries(group).map(([verb, operation]) => [verb, onOne(operation)]),
  ) as OnDesk<Group>;
}

/** An operation, or a group of them, as a program calls it: in a repository that is open. */
type Bound<Operation> = (Operation extends (workspace: Workspace, ...request: infer Request) => infer Value
  ? (...request: Request) => Promise<Awaited<Value>>
  : unknown) & {
  readonly [Verb in keyof Operation]: Bound<Operation[Verb]>;
};

export type Operations = {
  readonly [Word in keyof typeof OPERATIONS]: Bound<Awaited<ReturnType<(typeof OPERATIONS)[Word]>>>;
};

export function operationsIn(workspace: Workspace): Operations {
  return Object.fromEntries(
    Object.entries(OPERATIONS).map(([word, load]) => [word, bound(workspace, word, load)]),
  ) as unknown as Operations;
}

type Loaded = Readonly<Record<string, unknown>>;

function bound(workspace: Workspace, word: string, load: () => Promise<unknown>): unknown {
  const call =
    (name: string, find: (loaded: Loaded) => unknown) =>
    async (request: unknown = {}): Promise<unknown> => {
      try {
        const operation = find((await load()) as Loaded);
        if (typeof operation !== "function")
          throw new CotenantError("E_USAGE", `there is no operation ${printable(name)}`, {
            hint: "operations have the words of commands, in camel case: 'cotenant help' lists them",
          });
        return await operation(workspace, request);
      } catch (error) {
        const { explained } = await import("./coordinator/explained");
        throw await explained(asError(error), workspace);
      }
    };
  return new Proxy(
    call(word, (loaded) => loaded),
    {
      // Whatever is awaited is asked for `then`.
      get: (_, verb) =>
        verb === "then" || typeof verb === "symbol"
          ? undefined
          : call(`${word}.${verb}`, (loaded) => loaded[verb]),
    },
  );
}

/** A request of another shape than its type says fails somewhere inside: callers get one sort of error all the same. */
function asError(error: unknown): unknown {
  if (!(error instanceof TypeError)) return error;
  return new CotenantError("E_INTERNAL", error.message, {
    hint: "compare the request with its type; if it fits, this is a bug of cotenant's",
    cause: error,
  });
}
