/** A process of several sessions that contend for leases: `node worker.cjs '<orders>'`. Ends when it is done, or told so by the end of its standard input. */
import { Session } from "../../../src/coordinator/session";
import { Workspace } from "../../../src/coordinator/workspace";
import { engineInFront } from "../../../src/daemon/in-front";
import { orThrow } from "../../../src/errors/cotenant-error";
import { parseAgentId, parseSessionId } from "../../../src/kernel/ids";
import { thisMachine } from "../../../src/platform/node/this-machine";
import { SessionSecrets } from "../../../src/store/secrets";
import { Prng } from "../../../testing/simulator/prng";
import { CallerAtWork } from "./caller-at-work";
import type { Caller } from "./history";
import type { Orders } from "./orders";
import { processName, Record } from "./record";
import { RecordingCoordinator } from "./recording-coordinator";

const orders = JSON.parse(process.argv[2]!) as Orders;
const record = new Record(orders.record);
let isToldToLeave = false;

async function open(name: string): Promise<Workspace> {
  const config = { "store.rotate_bytes": orders.rotateBytes };
  const surroundings = { ...thisMachine(), cwd: orders.cwd, isTerminal: false };
  return Workspace.open(surroundings, {
    agentId: `agent:${name}`,
    session: "main",
    config,
    doing: "verification",
    ...(orders.isThroughDaemon === true ? { engine: (one) => engineInFront(one), isLongLived: true } : {}),
  });
}

/** Every third caller is a person: those may end live leases of others. */
async function callerOn(
  workspace: Workspace,
  base: Session,
  at: number,
): Promise<{ caller: Caller; work: CallerAtWork }> {
  const { platform } = workspace.surroundings;
  const kind = at % 3 === 2 ? "human" : "agent";
  const agentId = orThrow(parseAgentId(`${kind}:${orders.name}-${at}`));
  const actor = { ...base.actor, agentId, sessionId: orThrow(parseSessionId("main")) };
  const caller = {
    process: processName(platform.processes.self()),
    agent: agentId,
    session: actor.sessionId,
    worktree: actor.worktreeId,
  };
  const secrets = new SessionSecrets(platform, workspace.store.layout, actor, () =>
    workspace.store.prepare(),
  );
  const coordinator = new RecordingCoordinator(await workspace.engine(), record, caller);
  const session = new Session(platform, coordinator, actor, secrets);
  const chance = new Prng(orders.seed, `${orders.name}-${at}`);
  return { caller, work: new CallerAtWork(workspace, session, caller, record, orders, chance) };
}

async function main(): Promise<void> {
  process.stdin.on("end", () => {
    isToldToLeave = true;
  });
  process.stdin.resume();
  const turns: Promise<void>[] = [];
  // Two callers share a store, and thereby its batches; others have one of their own.
  for (let at = 0; at < orders.sessions; at += 2) {
    const workspace = await open(`${orders.name}-${at}`);
    const base = await workspace.session("write");
    for (const one of [at, at + 1].filter((each) => each < orders.sessions)) {
      const { work } = await callerOn(workspace, base, one);
      turns.push(
        (async () => {
          const isOnlooker = one === orders.sessions - 1 && one > 0;
          for (let turn = 0; turn < orders.turns && !isToldToLeave; turn++)
            await (isOnlooker ? work.watch() : work.turn());
        })(),
      );
    }
  }
  await Promise.all(turns);
}

main().then(
  () => {
    record.bye();
    process.exit(0);
  },
  (error: unknown) => {
    record.trouble(error);
    process.exit(1);
  },
);
