import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Prng } from "../../../testing/simulator/prng";
import { type DaemonRecordJson, RawClient } from "../../support/daemon";
import { FRAME_PIECES } from "../../support/frame-pieces";
import type { Layer, Task } from "../layer";
import { clear, fastDisk, makePlace } from "../linearizability/place";
import { Supervisor } from "./supervisor";

/** Frames between two looks at whether the daemon is well. */
const BETWEEN = 500;
const ANSWER_WITHIN_MS = 30_000;
const LAST = 424_242;

const METHODS =
  "acquire renew heartbeat release transfer evict stop upkeep held list find overlapping endings watch follow_losses claim ledger_sync ping hello status __proto__ constructor";
const VALUES = [
  "null",
  "-1",
  "1e999",
  "[]",
  "{}",
  '""',
  '"\\u0000"',
  "true",
  '{"__proto__":{"actor":1}}',
  '"agent:a"',
  "[[[[[[]]]]]]",
];
const FIELDS = [
  "actor",
  "keys",
  "leases",
  "secrets",
  "relay",
  "request_id",
  "ttl_secs",
  "after",
  "refs",
  "repo_path",
  "__proto__",
];

/** Whatever anybody says on the daemon's socket, it goes on, answers those who make sense, and nothing comes of the rest. */
export const daemonFrames: Layer = {
  name: "daemon frames",
  unit: "frames",
  inTest: 2_000,
  inVerify: 100_000,
  share: 0.02,
  mustMove: ["of pieces", "of bytes", "well formed", "cut short", "errors answered", "results answered"],
  async prove(task) {
    const { path } = await task.bundle("tests/verify/daemon/process.ts");
    const place = makePlace(fastDisk());
    const supervisor = new Supervisor(place, path);
    try {
      await supervisor.start();
      const file = join(place.control, `daemon/${process.getuid!()}.json`);
      const record = JSON.parse(readFileSync(file, "utf8")) as DaemonRecordJson;
      const before = logIn(place.control);
      for (let at = 0; task.goesOn && supervisor.trouble.length === 0; at++)
        await talk(task, record, new Prng(task.seed, `frames ${at}`));
      if (logIn(place.control) !== before)
        task.broke("something came of frames that make no sense", replay(task));
    } catch (error) {
      task.broke(`whoever makes sense is not answered: ${String(error)}`, replay(task));
    } finally {
      await supervisor.end();
      for (const what of supervisor.trouble) task.broke(what, replay(task));
      clear(place);
    }
  },
};

async function talk(task: Task, record: DaemonRecordJson, chance: Prng): Promise<void> {
  const client = new RawClient(record.socket);
  if (chance.chance(0.9)) client.hello(record);
  for (let said = 0; said < BETWEEN && !client.isClosed; said++) {
    client.say(frameOf(task, chance));
    task.tried++;
    if (said % 100 === 0) await settled(client);
  }
  if (chance.chance(0.1)) {
    client.say('{"jsonrpc":"2.0","id":7,"meth');
    task.count("cut short");
  } else await answered(client);
  for (const one of client.heard) task.count("error" in one ? "errors answered" : "results answered");
  client.socket.destroy();
  await isWell(task, record);
}

function frameOf(task: Task, chance: Prng): string | Uint8Array {
  const kind = chance.pick(["of pieces", "of bytes", "well formed"]);
  task.count(kind);
  if (kind === "of bytes") {
    const bytes = Buffer.from(Array.from({ length: chance.below(60) }, () => chance.below(256)));
    return Buffer.concat([bytes, Buffer.from("\n")]);
  }
  if (kind === "of pieces") {
    let text = "";
    for (let n = chance.below(8); n >= 0; n--) text += chance.pick(FRAME_PIECES);
    return `${text}\n`;
  }
  const params = Array.from(
    { length: chance.below(6) },
    () => `${JSON.stringify(chance.pick(FIELDS))}:${chance.pick(VALUES)}`,
  );
  const method = chance.pick(METHODS.split(" "));
  return `{"jsonrpc":"2.0","id":${chance.pick(VALUES)},"method":"${method}","params":{${params}}}\n`;
}

/** What was said is with the daemon, as far as it takes it. */
async function settled(client: RawClient): Promise<void> {
  const until = performance.now() + ANSWER_WITHIN_MS;
  while (client.socket.writableLength > 0 && !client.isClosed && performance.now() < until) await nap(2);
}

/** Frames are begun in order: when this one is answered, all before it were read. What is left when somebody goes is dropped. */
async function answered(client: RawClient): Promise<void> {
  const until = performance.now() + ANSWER_WITHIN_MS;
  client.send(LAST, "ping", {});
  while (!client.isClosed && performance.now() < until) {
    if (client.heard.some(({ id }) => id === LAST)) return;
    await nap(2);
  }
}

async function isWell(task: Task, record: DaemonRecordJson): Promise<void> {
  const client = new RawClient(record.socket);
  client.hello(record);
  client.send(1, "list", {});
  const until = performance.now() + ANSWER_WITHIN_MS;
  const answer = () =>
    client.heard.find(({ id }) => id === 1) as { result?: { leases: unknown[] } } | undefined;
  while (answer() === undefined && !client.isClosed && performance.now() < until) await nap(2);
  if (answer() === undefined) throw new Error("the daemon does not answer");
  if (answer()?.result?.leases.length !== 0)
    task.broke(`whoever makes sense was answered ${JSON.stringify(answer())}`, replay(task));
  client.socket.destroy();
}

function logIn(control: string): string {
  try {
    return readFileSync(join(control, "claims.jsonl"), "utf8");
  } catch {
    return "";
  }
}

function replay({ seed, tried }: Task): string {
  return `npm run verify -- --layer "daemon frames" --seed ${seed} --least ${tried + 1}`;
}

function nap(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
