import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { Machine, sharedIssues } from "../support/machines";
import { expectJsonRefused } from "../support/refusals";
import { scratch } from "../support/scratch";

const copyOf = (machine: Machine) => path.join(machine.ledger, "ledger.git");

/** Ways in which a bare repository can be damaged. */
const DAMAGES: Readonly<Record<string, (copy: string) => void>> = {
  "its HEAD is gone": (copy) => fs.rmSync(path.join(copy, "HEAD")),
  "it is an empty directory": (copy) => {
    fs.rmSync(copy, { recursive: true });
    fs.mkdirSync(copy);
  },
  "it is a file": (copy) => {
    fs.rmSync(copy, { recursive: true });
    fs.writeFileSync(copy, "not a repository");
  },
  "its objects are gone": (copy) => {
    fs.rmSync(path.join(copy, "objects"), { recursive: true });
    fs.mkdirSync(path.join(copy, "objects"));
  },
  "its objects are zeroed": (copy) => {
    for (const file of filesBelow(path.join(copy, "objects"))) {
      fs.chmodSync(file, 0o600);
      fs.writeFileSync(file, Buffer.alloc(fs.statSync(file).size));
    }
  },
  "its refs are garbage": (copy) => {
    for (const file of filesBelow(path.join(copy, "refs"))) fs.writeFileSync(file, "garbage\n");
  },
  "its configuration is garbage": (copy) => fs.writeFileSync(path.join(copy, "config"), "[core\n"),
};

function filesBelow(directory: string): string[] {
  return fs
    .readdirSync(directory, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name));
}

describe("this machine's copy, damaged in any way,", () => {
  // The next test starts the program for it.
  it("is made anew, and claims go on", async () => {
    const names = Object.keys(DAMAGES);
    const { hub, first, ids } = await sharedIssues(names.length + 1);
    const { lease } = await first.prepare("claim", "acquire", ids.at(-1)!);
    for (const [n, name] of names.entries()) {
      DAMAGES[name]!(copyOf(first));
      const claimed = await first.askHere("claim", "acquire", ids[n]!);
      expect(claimed.data, name).toMatchObject({ offline: false });
      expect(hub.claim(ids[n]!), name).toMatchObject({ lease_id: claimed.lease.lease_id });
    }
    expect(hub.claim(ids.at(-1)!)).toMatchObject({ lease_id: lease.lease_id, status: "held" });
    expect((await first.askHere("claim", "list")).data.leases).toHaveLength(names.length + 1);
  });

  it("loses nothing that was acknowledged, whatever is asked next", async () => {
    const damage = DAMAGES["its objects are zeroed"]!;
    const { hub, first, ids } = await sharedIssues(3);
    const [held, next, last] = ids as [string, string, string];
    const { lease } = await first.prepare("claim", "acquire", held);
    await first.prepare("issue", "comment", held, "--text", "before");
    await first.prepare("sync");
    await first.prepare("issue", "comment", held, "--text", "after");
    damage(copyOf(first));
    const claimed = await first.ask("claim", "acquire", next);
    expect(claimed.data).toMatchObject({ offline: false });
    expect(hub.claim(next)).toMatchObject({ lease_id: claimed.lease.lease_id });
    damage(copyOf(first));
    expect((await first.ask("claim", "release", next)).status).toBe(0);
    expect(hub.claim(next)).toMatchObject({ status: "released" });
    damage(copyOf(first));
    expect((await first.ask("sync")).data).toMatchObject({ contradictions: [], conflicts: [] });
    expect(hub.git("show", `cotenant-sync:.cotenant/issues/${held}/comments.jsonl`)).toContain("after");
    expect(hub.claim(held)).toMatchObject({ lease_id: lease.lease_id, status: "held" });
    expect((await first.askHere("claim", "acquire", last)).data).toMatchObject({ offline: false });
    expect((await first.askHere("claim", "list")).data.leases).toHaveLength(2);
  });
});

describe("places", () => {
  it("that cannot be written: said, with the way out, and nothing is left of the attempt", async () => {
    const { first } = await sharedIssues(1, { setUp: false });
    const room = scratch("places");
    fs.writeFileSync(path.join(room, "file"), "");
    const inFile = { COTENANT_SYNC_GLOBAL_PATH_OVERRIDE: path.join(room, "file", "below") };
    const ran = await first.askWith(inFile, "sync", "--setup-ledger");
    expect(ran.status).toBe(10);
    expect(ran.error.hint).toMatch(/XDG_DATA_HOME.*global_path_override/);
    expect(fs.readdirSync(room)).toEqual(["file"]);
    // Not even root makes directories there.
    const locked = { COTENANT_SYNC_GLOBAL_PATH_OVERRIDE: "/sys/cotenant/ledgers" };
    expectJsonRefused(await first.askHereWith(locked, "sync", "--setup-ledger"), 10, "E_PERMISSION");
  });

  it("names of remotes that no file system should see become harmless", async () => {
    const { hub, first } = await sharedIssues(1, { setUp: false });
    const odd = path.join(hub.room, 'we?rd "name" *<x>|.git');
    fs.renameSync(hub.path, odd);
    first.repo.git("remote", "set-url", "origin", odd);
    const ran = await first.ask("sync", "--setup-ledger");
    expect(path.basename(String(ran.data["directory"]))).toMatch(/^we_rd__name___\w*_?-[0-9a-f]{8}$/);
    expect(ran.json.warnings!.join()).toContain("not every file system");
  });

  it("a copy of the whole clone does not think that it holds what the original holds", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    const { lease } = await first.prepare("claim", "acquire", id);
    const elsewhere = path.join(scratch("copied"), "work");
    execFileSync("cp", ["-a", first.repo.root, elsewhere]);
    const copied = new Machine("first", first.repo.at(elsewhere), path.join(elsewhere, "../home"));
    expect((await copied.askHere("claim", "list")).data.leases).toMatchObject([{ ledger: "provisional" }]);
    const ran = await copied.ask("sync");
    expect(ran.status).toBe(1);
    expect(ran.json.data!["conflicts"]).toMatchObject([{ issue_id: id, claimed_by: "agent:first" }]);
    expect(hub.claim(id)).toMatchObject({ lease_id: lease.lease_id, status: "held" });
    expect((await first.askHere("sync")).data).toMatchObject({ conflicts: [] });
  });

  it("a clone that was moved is the same as before; one that was put back from a backup is another", async () => {
    const { hub, first, ids } = await sharedIssues(1);
    const [id] = ids as [string];
    const { lease } = await first.prepare("claim", "acquire", id);
    const elsewhere = path.join(path.dirname(first.repo.root), "moved");
    fs.renameSync(first.repo.root, elsewhere);
    const moved = new Machine("first", first.repo.at(elsewhere), first.home);
    expect((await moved.askHere("claim", "list")).data.leases).toMatchObject([{ ledger: "confirmed" }]);
    expect((await moved.ask("sync")).data).toMatchObject({ conflicts: [] });
    execFileSync("cp", ["-a", elsewhere, `${elsewhere}.backup`]);
    fs.rmSync(elsewhere, { recursive: true });
    execFileSync("cp", ["-a", `${elsewhere}.backup`, elsewhere]);
    // Nobody can tell it from a copy. It waits for its old claim to run out, as others do.
    expect((await moved.askHere("claim", "list")).data.leases).toMatchObject([{ ledger: "provisional" }]);
    const back = await moved.ask("sync");
    expect(back.status).toBe(1);
    expect(back.json.data!["conflicts"]).toMatchObject([{ issue_id: id, claimed_by: "agent:first" }]);
    expect(hub.claim(id)).toMatchObject({ status: "held", lease_id: lease.lease_id });
  });
});
