import type { Layer } from "../layer";
import { usualOrders } from "../linearizability/usual-orders";
import { playWithDaemon } from "./with-daemon";

/** 64 clients, each one session; two of a process share a connection, and its store when it goes without. */
const CLIENTS = { processes: 4, sessions: 16, isThroughDaemon: true };
const BESIDE = { processes: 2, sessions: 4, isThroughDaemon: false };
const TURNS_PER_SESSION = 4;
const PEERS = [0, 1, 4, 5];

/** Many clients of a daemon and some beside it, all after the same few keys (S73). The daemon lives on. */
export const crowd: Layer = {
  name: "daemon crowd",
  unit: "operations",
  inTest: 400,
  inVerify: 20_000,
  share: 0.03,
  mustMove: ["takeovers", "refusals", "releases", "requests to the daemon", "through it", "beside it"],
  prove: (task) =>
    playWithDaemon(
      task,
      crowd.name,
      async ({ crew, chance }) => {
        for (const { processes, sessions, isThroughDaemon } of [CLIENTS, BESIDE])
          for (let at = 0; at < processes; at++)
            crew.hire({
              ...usualOrders(PEERS),
              seed: chance.next(),
              sessions,
              turns: TURNS_PER_SESSION,
              isThroughDaemon,
            });
        await Promise.all(crew.workers.map(({ gone }) => gone));
      },
      ({ operations }, crew) => {
        const beside = new Set(crew.workers.slice(CLIENTS.processes).map(({ name }) => name));
        for (const { caller } of operations) {
          const [, name] = /^\w+:(w\d+)-/.exec(caller.agent) ?? [];
          task.count(beside.has(name ?? "") ? "beside it" : "through it");
        }
      },
    ),
};
