import { execFileSync, spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import type { Hub } from "../support/hub";
import { clockOff, sharedIssues } from "../support/machines";
import { PROGRAM } from "../support/program";
import { scratch } from "../support/scratch";

interface Answer {
  readonly status: number | null;
  readonly text: string;
  readonly json: {
    readonly data?: Record<string, unknown> & { lease: { lease_id: string }; leases: { ledger: string }[] };
    readonly error?: { readonly code: string; readonly message: string };
    readonly warnings?: string[];
  };
}

/** A machine in a mount namespace of its own, at the same paths as its twin. */
class Container {
  readonly #mount: string;
  readonly #at: string;
  readonly #agent: string;

  constructor(mount: string, at: string, agent: string) {
    this.#mount = mount;
    this.#at = at;
    this.#agent = agent;
  }

  /** With this directory for the shared path. */
  static copyOf(image: string, at: string, agent: string): Container {
    const own = path.join(scratch("copy"), "machine");
    execFileSync("cp", ["-a", image, own]);
    return new Container(`mount --bind ${own} ${at}`, at, agent);
  }

  /** As container engines do it: inodes are those of the image. */
  static overlayOf(image: string, at: string, agent: string): Container {
    const own = scratch("overlay");
    for (const name of ["upper", "work"]) fs.mkdirSync(path.join(own, name));
    const layers = `lowerdir=${image},upperdir=${own}/upper,workdir=${own}/work`;
    return new Container(`mount -t overlay overlay -o ${layers} ${at}`, at, agent);
  }

  ask(...args: string[]): Answer {
    return this.askWith({}, ...args);
  }

  askWith(env: Readonly<Record<string, string | undefined>>, ...args: string[]): Answer {
    const script = `${this.#mount} && cd ${this.#at}/work && exec "$0" "$@"`;
    const ran = spawnSync("unshare", ["--mount", "sh", "-c", script, PROGRAM, ...args, "--json"], {
      encoding: "utf8",
      env: {
        ...process.env,
        HOME: `${this.#at}/home`,
        COTENANT_AGENT_ID: this.#agent,
        COTENANT_SYNC_LEDGER_BRANCH: "cotenant-sync",
        ...env,
      },
    });
    const text = ran.stdout + ran.stderr;
    return { status: ran.status, text, json: JSON.parse(ran.stdout || "{}") };
  }
}

/** One machine, whose clone has used the ledger, turned into an image; and the path at which its copies will stand. */
async function imageOf(): Promise<{ hub: Hub; image: string; at: string; ids: string[] }> {
  const { hub, first, ids } = await sharedIssues(3);
  await first.prepare("claim", "acquire", ids[2]!);
  await first.prepare("claim", "release", ids[2]!);
  return { hub, image: path.dirname(first.repo.root), at: scratch("at"), ids };
}

describe("S83: two copies of one clone at one path in two mount namespaces", () => {
  it("have two ids, and an issue has one winner", async () => {
    const { hub, image, at, ids } = await imageOf();
    const [id] = ids as [string];
    const twins = ["agent:same", "agent:same"].map((agent) => Container.copyOf(image, at, agent));
    const [one, other] = twins.map((twin) => twin.ask("claim", "acquire", id)) as [Answer, Answer];
    expect(one.status, one.text).toBe(0);
    expect(other.json.error, other.text).toMatchObject({ code: "E_LOCK_CONFLICT" });
    expect(hub.claim(id)).toMatchObject({ lease_id: one.json.data!.lease.lease_id });
    const second = twins[1]!.ask("claim", "acquire", ids[1]!);
    expect(second.status, second.text).toBe(0);
    expect(hub.claim(ids[1]!)["clone_id"]).not.toBe(hub.claim(id)["clone_id"]);
  });

  it("that match in everything: whoever meets the other's claim takes a new id, says so, and takes nothing", async () => {
    const { hub, image, at, ids } = await imageOf();
    const [id, free] = ids as [string, string];
    const twins = ["agent:one", "agent:other"].map((agent) => Container.overlayOf(image, at, agent));
    const one = twins[0]!.ask("claim", "acquire", id);
    expect(one.status, one.text).toBe(0);
    const lease = one.json.data!.lease.lease_id;
    // Neither a claim, nor a sync that looks for orphans, takes what the twin holds.
    const refused = twins[1]!.ask("claim", "acquire", id);
    expect(refused.json.error, refused.text).toMatchObject({
      code: "E_FENCING_MISMATCH",
      message: expect.stringContaining("another copy of this clone"),
    });
    const again = twins[1]!.ask("claim", "acquire", id);
    expect(again.json.error, again.text).toMatchObject({ code: "E_LOCK_CONFLICT" });
    expect(twins[1]!.ask("sync").status).toBe(0);
    expect(hub.claim(id)).toMatchObject({ status: "held", lease_id: lease });
    // From now on they are two.
    const next = twins[1]!.ask("claim", "acquire", free);
    expect(next.status, next.text).toBe(0);
    expect(next.text).not.toMatch(/another copy/);
    expect(hub.claim(free)["clone_id"]).not.toBe(hub.claim(id)["clone_id"]);
    const beat = twins[0]!.ask("claim", "heartbeat", id);
    expect(beat.status, beat.text).toBe(0);
    expect(beat.text).not.toMatch(/another copy/);
  });

  it("also of a clone that held a claim: one goes on with it, and the other is told that it has lost it", async () => {
    const { hub, first, ids } = await sharedIssues(2);
    const [id] = ids as [string];
    const { lease } = await first.prepare("claim", "acquire", id);
    const at = scratch("at");
    const image = path.dirname(first.repo.root);
    const twins = [1, 2].map(() => Container.overlayOf(image, at, first.agent));
    const beat = twins[0]!.askWith(clockOff("+25m"), "claim", "heartbeat", id);
    expect(beat.status, beat.text).toBe(0);
    const other = twins[1]!.ask("sync");
    expect(other.json.error, other.text).toMatchObject({ code: "E_FENCING_MISMATCH" });
    expect(twins[1]!.ask("sync", "--reconcile").status).toBe(1);
    expect(twins[1]!.ask("claim", "list").json.data!.leases).toEqual([]);
    expect(twins[0]!.ask("claim", "list").json.data!.leases).toMatchObject([{ ledger: "confirmed" }]);
    expect(hub.claim(id)).toMatchObject({ status: "held", lease_id: lease.lease_id });
  });
});
