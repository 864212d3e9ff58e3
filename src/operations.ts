import type { Workspace } from "./coordinator/workspace";

/** Every operation, by the words of its command; its code is loaded when it is called. */
export const OPERATIONS = {
  claim: async () => (await import("./features/claims/operations")).claim,
  lock: async () => (await import("./features/locks/operations")).lock,
  pause: async () => (await import("./features/locks/operations")).pause,
  resume: async () => (await import("./features/locks/operations")).resume,
};

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
    Object.entries(OPERATIONS).map(([word, load]) => [word, bound(workspace, load)]),
  ) as unknown as Operations;
}

type Loaded = Readonly<Record<string, unknown>>;

function bound(workspace: Workspace, load: () => Promise<unknown>): unknown {
  const call =
    (find: (loaded: Loaded) => unknown) =>
    async (...request: unknown[]): Promise<unknown> => {
      try {
        const operation = find((await load()) as Loaded) as (...given: unknown[]) => unknown;
        return await operation(workspace, ...request);
      } catch (error) {
        const { explained } = await import("./coordinator/explained");
        throw await explained(error, workspace);
      }
    };
  return new Proxy(
    call((loaded) => loaded),
    {
      // Whatever is awaited is asked for `then`.
      get: (_, verb) =>
        verb === "then" || typeof verb === "symbol" ? undefined : call((loaded) => loaded[verb]),
    },
  );
}
