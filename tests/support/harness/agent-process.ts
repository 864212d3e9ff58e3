/**
 * A scripted agent in a process of its own, as a harness would be: `node agent-process.cjs '<Cast as JSON>'`. Orders come
 * as lines of JSON on standard input; each is answered by a line on standard output, in their order.
 */
import { createInterface } from "node:readline";
import type { Deed } from "./deeds";
import type { Played } from "./dialect";
import { Journal } from "./journal";
import { Player } from "./player";
import { type Job, work } from "./work";

export interface Cast {
  readonly harness: Played;
  readonly root: string;
  readonly home: string;
  readonly session: string;
  readonly log: string;
  readonly journal: string | null;
  readonly subagent?: string;
}

export type Order =
  | { readonly order: "start" | "stop" | "stop-subagent" | "end" }
  | { readonly order: "prompt"; readonly prompt: string }
  | { readonly order: "act"; readonly deed: Deed }
  | { readonly order: "work"; readonly job: Job };

async function main(): Promise<void> {
  const cast = JSON.parse(process.argv[2]!) as Cast;
  const journal = new Journal(cast.journal, `${cast.harness}:${cast.session}`, cast.log);
  const player = new Player(cast.harness, cast, journal);
  // Whoever hired it is gone, or has nothing more to say.
  process.stdin.once("end", () => process.exit(0));
  const say = (answer: object) => process.stdout.write(`${JSON.stringify(answer)}\n`);
  for await (const line of createInterface({ input: process.stdin }))
    say(await obey(player, JSON.parse(line)));
}

async function obey(player: Player, order: Order): Promise<object> {
  switch (order.order) {
    case "act":
      return player.act(order.deed);
    case "prompt":
      await player.prompt(order.prompt);
      return {};
    case "work":
      return work(player, order.job);
    case "start":
      await player.start();
      return { pid: process.pid };
    case "stop":
      await player.stop();
      return {};
    case "stop-subagent":
      await player.stopSubagent();
      return {};
    case "end":
      await player.end();
      return {};
  }
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
    process.exit(1);
  },
);
