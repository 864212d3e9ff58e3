import { spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Prng } from "../../../testing/simulator/prng";
import { ROOT } from "../bundle";
import type { Answer, Ask, Caller, Operation, Seen } from "./history";
import type { Place } from "./place";
import { nowMs, processName } from "./record";

const PROGRAM = join(ROOT, "bin/cotenant");

interface LeaseJson {
  readonly lease_id: string;
  readonly key: string;
  readonly agent_id: string;
  readonly worktree_id: string;
  readonly holder: { readonly pid: number; readonly start_time: string };
  readonly ttl_secs: number;
  readonly fencing_token: number;
  readonly bind: string;
  readonly reach: string;
  readonly stole_from: readonly { readonly lease_id: string; readonly why: string }[];
  readonly standing?: string;
}

interface Said {
  readonly ok: boolean;
  readonly data?: { readonly leases: readonly LeaseJson[] };
  readonly error?: {
    readonly code: string;
    readonly data: { readonly holders?: readonly { lease_id: string }[] };
  };
}

/** Somebody at a shell: the real program, one command after the other, now and then killed. */
export class CommandLine {
  readonly operations: Operation[] = [];
  readonly trouble: string[] = [];
  kills = 0;
  readonly #place: Place;
  readonly #name: string;
  readonly #keys: readonly (readonly string[])[];
  readonly #chance: Prng;
  readonly #killShare: number;
  readonly #restMs: number;
  #turn = 0;
  #worktree = "";

  constructor(
    place: Place,
    name: string,
    keys: readonly (readonly string[])[],
    chance: Prng,
    { killShare, restMs }: { readonly killShare: number; readonly restMs: number },
  ) {
    this.#restMs = restMs;
    this.#place = place;
    this.#name = name;
    this.#keys = keys;
    this.#chance = chance;
    this.#killShare = killShare;
  }

  async workUntil(isOver: () => boolean): Promise<void> {
    this.#worktree = await this.#findWorktree();
    while (!isOver()) {
      await this.turn();
      await new Promise((resolve) => setTimeout(resolve, this.#restMs));
    }
  }

  async turn(): Promise<void> {
    const chance = this.#chance;
    // A new agent each time: what a killed command did can be told from what came before.
    const agent = `${chance.chance(0.3) ? "human" : "agent"}:${this.#name}-${++this.#turn}`;
    const caller = { process: agent, agent, session: "default", worktree: this.#worktree };
    const keys = chance.shuffle([...chance.pick(this.#keys)]).slice(0, chance.chance(0.3) ? 2 : 1);
    if (chance.chance(0.25)) await this.#read(caller);
    const steal = agent.startsWith("human:") && chance.chance(0.5);
    if (!(await this.#acquire(caller, keys, steal))) return;
    if (chance.chance(0.3)) await this.#holding(caller, keys, "renew");
    if (chance.chance(0.9)) await this.#holding(caller, keys, "release");
  }

  async #findWorktree(): Promise<string> {
    const { worktrees, env } = this.#place;
    const said = await run(
      ["worktree", "info"],
      worktrees[0]!,
      { ...env, COTENANT_AGENT_ID: "agent:first" },
      null,
    );
    return (JSON.parse(said.text) as { data: { worktree: { worktree_id: string } } }).data.worktree
      .worktree_id;
  }

  async #acquire(caller: Caller, keys: readonly string[], steal: boolean): Promise<boolean> {
    const secs = this.#chance.between(1, 3);
    const wants = keys.map((key) => ({ key, within: null }));
    const verb = steal ? ["lock", "steal", "--reason", "in the way"] : ["lock", "acquire"];
    const args = [...verb, ...keys.flatMap(argumentsFor), "--ttl", String(secs)];
    const ask = (ids: readonly string[] | null) =>
      ({ do: "acquire", wants, ids, ttlMs: secs * 1000, bound: false, steal }) as const;
    const answer = await this.#run(
      caller,
      args,
      () => ask(null),
      () => ask(this.#proposed(caller, keys)),
    );
    return answer.is === "done";
  }

  async #holding(caller: Caller, keys: readonly string[], verb: "renew" | "release"): Promise<void> {
    const names = keys.map((key) => ({ key, id: null }));
    const ask: Ask =
      verb === "renew" ? { do: "renew", names, extends: true, ttlMs: null } : { do: "release", names };
    await this.#run(caller, ["lock", verb, ...keys.flatMap(argumentsFor)], () => ask);
  }

  async #read(caller: Caller): Promise<void> {
    await this.#run(caller, ["lock", "status", "--all"], () => ({ do: "read", names: null }));
  }

  async #run(caller: Caller, args: readonly string[], ask: () => Ask, lost = ask): Promise<Answer> {
    const { worktrees, env } = this.#place;
    const killMs = this.#chance.chance(this.#killShare) ? this.#chance.between(5, 120) : null;
    const calledMs = nowMs();
    const ran = await run(args, worktrees[0]!, { ...env, COTENANT_AGENT_ID: caller.agent }, killMs);
    const endedMs = nowMs();
    if (ran.isKilled) this.kills++;
    const answer = ran.isKilled ? ({ is: "unknown" } as const) : this.#understood(ran.text, args);
    const isLook = args.includes("status");
    if (!(isLook && answer.is === "unknown"))
      this.operations.push({
        caller,
        calledMs,
        endedMs,
        ask: ran.isKilled ? lost() : ask(),
        answer,
        tends: !isLook,
      });
    return answer;
  }

  #understood(text: string, args: readonly string[]): Answer {
    let said: Said;
    try {
      said = JSON.parse(text) as Said;
    } catch {
      this.trouble.push(`cotenant ${args.join(" ")} said: ${text}`);
      return { is: "unknown" };
    }
    if (said.error !== undefined) {
      const holders = said.error.data.holders ?? [];
      return { is: "refused", code: said.error.code, holders: holders.map(({ lease_id }) => lease_id) };
    }
    const leases = said.data!.leases;
    const ended = leases.flatMap(({ stole_from }) => stole_from);
    return {
      is: "done",
      leases: leases.map(seen),
      ended: [
        ...new Map(ended.map(({ lease_id: id, why }) => [id, { id, forced: why === "forced" }])).values(),
      ],
    };
  }

  /** A killed command's lease ids: kept with the secret before they were asked for. */
  #proposed({ agent }: Caller, keys: readonly string[]): readonly string[] | null {
    const secrets = join(this.#place.control, "secrets");
    const folders = existsSync(secrets) ? readdirSync(secrets, { recursive: true, encoding: "utf8" }) : [];
    const mine = folders.filter((path) => path.includes(agent.split(":")[1]!) && path.endsWith(".json"));
    for (const line of mine.flatMap((path) => readFileSync(join(secrets, path), "utf8").split("\n"))) {
      if (!line.endsWith("}")) continue;
      const { leases } = JSON.parse(line) as { leases: { lease_id: string; key: string }[] };
      const ids = keys.map((key) => leases.find((lease) => lease.key === key)?.lease_id);
      if (ids.every((id) => id !== undefined)) return ids as string[];
    }
    return null;
  }
}

function run(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  killMs: number | null,
): Promise<{ text: string; isKilled: boolean }> {
  const child = spawn(PROGRAM, [...args, "--json"], { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (more: string) => {
      text += more;
    });
  const killer = killMs === null ? undefined : setTimeout(() => child.kill("SIGKILL"), killMs);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (_, signal) => {
      clearTimeout(killer);
      resolve({ text, isKilled: signal === "SIGKILL" });
    });
  });
}

function argumentsFor(key: string): string[] {
  const [kind, name] = [key.slice(0, key.indexOf(":")), key.slice(key.indexOf(":") + 1)];
  if (kind === "file") return [name];
  return [`--${kind}`, name];
}

function seen(lease: LeaseJson): Seen {
  const { lease_id: id, key, fencing_token: token, agent_id: agent, worktree_id: worktree, holder } = lease;
  const process =
    lease.bind === "process" ? processName({ pid: holder.pid, startTime: holder.start_time }) : null;
  return {
    id,
    key,
    within: lease.reach === "worktree" ? worktree : null,
    token,
    agent,
    worktree,
    ttlMs: lease.ttl_secs * 1000,
    process,
    expiresMs: null,
    valid: lease.standing === undefined || lease.standing === "valid",
  };
}
