import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

interface Shown {
  readonly id: string;
  readonly short_id: string;
  readonly state: string;
  readonly title: string;
  readonly labels: readonly string[];
  readonly dependencies: readonly string[];
  readonly stamp: { readonly version: number; readonly lease_id: string | null };
}

let repo: TestRepo;
beforeEach(async () => {
  repo = TestRepo.make();
  await repo.prepare("human:ada", "init");
});

async function make(title: string, ...more: string[]): Promise<Shown> {
  return (await repo.prepare("human:ada", "issue", "create", "--title", title, ...more))["issue"] as Shown;
}

const shown = async (id: string, from = repo) =>
  (await from.prepare("agent:x", "issue", "show", id)) as unknown as {
    readonly issue: Shown;
    readonly layer: string;
    readonly comments: readonly { readonly text: string; readonly by: string }[];
  };

describe("S23: a change without a claim", () => {
  it("strict refuses, warn warns, off is silent", async () => {
    const { id } = await make("Work");
    const update = () => repo.ask("agent:a", "issue", "update", id, "--priority", "high");
    const refused = await update();
    expectJsonRefused(refused, 6, "E_LEASE_REQUIRED");
    expect(refused.error.hint).toContain(`cotenant claim acquire ${id}`);
    expect((await shown(id)).issue.stamp.version).toBe(1);

    await repo.prepare("human:ada", "config", "set", "worktree.enforce_leases", "warn");
    const warned = await update();
    expect(warned.status, `${warned}`).toBe(0);
    expect(warned.json.warnings?.join(" ")).toContain("without a claim");
    expect((await shown(id)).issue.stamp).toMatchObject({ version: 2, lease_id: null });

    await repo.prepare("human:ada", "config", "set", "worktree.enforce_leases", "off");
    const silent = await repo.ask("agent:a", "issue", "update", id, "--priority", "low");
    expect(silent.status).toBe(0);
    expect(silent.json.warnings ?? []).toEqual([]);
  });

  it("with somebody else's claim is refused whatever the change is", async () => {
    const { id } = await make("Work");
    const other = await make("Other");
    await repo.prepare("agent:b", "claim", "acquire", id);
    const update = ["issue", "update", id, "--state", "done"];
    expectRefused(await repo.run("agent:a", ...update), 6, "E_LOCK_NOT_HELD");
    for (const args of [
      ["issue", "assign", id, "agent:a"],
      ["issue", "unassign", id],
      ["issue", "reject", id, "--reason", "no"],
      ["issue", "delete", id],
      ["dep", "add", id, other.id],
      ["label", "add", id, "type:bug"],
    ])
      expectRefused(await repo.runHere("agent:a", ...args), 6, "E_LOCK_NOT_HELD");
    // But everybody may say something.
    expect((await repo.run("agent:a", "issue", "comment", id, "--text", "look here")).status).toBe(0);
    expect(await shown(id)).toMatchObject({
      issue: { state: "in_progress" },
      comments: [{ text: "look here", by: "agent:a" }],
    });
  });

  it("after the claim was evicted is refused as stale", async () => {
    const { id } = await make("Work");
    await repo.prepare("agent:a", "claim", "acquire", id);
    await repo.prepare("human:ada", "claim", "force-evict", id, "--reason", "gone");
    expectRefused(
      await repo.run("agent:a", "issue", "update", id, "--state", "done"),
      8,
      "E_FENCING_MISMATCH",
    );
  });
});

describe("S24: a dependency that would close a circle", () => {
  it("is refused with the circle", async () => {
    const [a, b, c] = [await make("A"), await make("B"), await make("C")];
    for (const { id } of [a, b, c]) await repo.prepare("agent:a", "claim", "acquire", id);
    await repo.prepare("agent:a", "dep", "add", a.id, b.id);
    await repo.prepare("agent:a", "dep", "add", b.id, c.id);
    const refused = await repo.ask("agent:a", "dep", "add", c.id, a.id);
    expectJsonRefused(refused, 9, "E_CYCLE");
    expect(refused.error.data?.["cycle"]).toEqual([c.id, a.id, b.id, c.id]);
    expectRefused(await repo.runHere("agent:a", "dep", "add", a.id, a.id), 9, "E_CYCLE");
    expect((await shown(c.id)).issue.dependencies).toEqual([]);
    await repo.prepare("agent:a", "dep", "rm", b.id, c.id);
    expect((await repo.run("agent:a", "dep", "add", c.id, a.id)).status).toBe(0);
  });
});

describe("S28: deleting", () => {
  it("from a secondary worktree is refused, and from the main one it is for good", async () => {
    const { id, short_id } = await make("Work");
    repo.git("add", ".cotenant");
    repo.git("commit", "--quiet", "--message", "issues");
    const second = repo.addWorktree("second");
    await second.prepare("agent:a", "claim", "acquire", id);
    const refused = await second.run("agent:a", "issue", "delete", id);
    expectRefused(refused, 9, "E_POLICY");
    expect(refused.stderr).toContain(repo.root);
    await second.prepare("agent:a", "claim", "release", id);

    await repo.prepare("human:ada", "claim", "acquire", id);
    const deleted = await repo.run("human:ada", "issue", "delete", id, "--reason", "a duplicate");
    expect(deleted.status).toBe(0);
    // Nothing is left to hold.
    expect(deleted.stdout).toContain("deleted, and its claim is given back");
    expect((await repo.askHere("human:ada", "claim", "list")).data.leases).toEqual([]);
    const again = await repo.runHere("human:ada", "issue", "delete", id);
    expectRefused(again, 4, "E_NOT_FOUND");
    // The second worktree still has the old copy in its files and in HEAD.
    expect(fs.existsSync(path.join(second.root, ".cotenant/issues", id, "issue.json"))).toBe(true);
    for (const from of [repo, second]) {
      const gone = await from.runHere("agent:a", "issue", "show", short_id);
      expectRefused(gone, 4, "E_NOT_FOUND");
      expect(gone.stderr).toContain("deleted by human:ada");
      expect((await from.askHere("agent:a", "issue", "list")).data["issues"]).toEqual([]);
      expect((await from.run("agent:a", "claim", "acquire", id)).status).toBe(4);
    }
  });
});

describe("an issue that is only in HEAD", () => {
  it("is brought back whole by whoever changes it: fields, labels and comments", async () => {
    const { id } = await make("Work", "--label", "area:x");
    await repo.prepare("agent:b", "issue", "comment", id, "--text", "first");
    repo.git("add", ".cotenant");
    repo.git("commit", "--quiet", "--message", "issues");
    for (const change of ["comment", "update"]) {
      fs.rmSync(path.join(repo.root, ".cotenant/issues", id), { recursive: true });
      if (change === "comment") await repo.ask("agent:a", "issue", "comment", id, "--text", "second");
      else {
        await repo.prepare("agent:a", "claim", "acquire", id);
        await repo.ask("agent:a", "issue", "update", id, "--priority", "high");
      }
      const found = await shown(id);
      expect(found.issue.labels).toEqual(["area:x"]);
      expect(found.comments.map(({ text }) => text)).toContain("first");
      expect(repo.git("status", "--porcelain", ".cotenant")).not.toContain(" D ");
    }
  });
});

describe("changing issues", () => {
  it("one call makes many, or none", async () => {
    const file = path.join(repo.root, "plan.jsonl");
    fs.writeFileSync(
      file,
      [
        { ref: "api", title: "The API", labels: ["type:story"], priority: "high" },
        { title: "The page", dependencies: ["api"], files: ["src/page.ts"] },
      ]
        .map((entry) => JSON.stringify(entry))
        .join("\n"),
    );
    const made = (await repo.ask("agent:a", "issue", "create", "--from", file)).data["issues"] as Shown[];
    expect(made.map(({ title }) => title)).toEqual(["The API", "The page"]);
    expect((await shown(made[1]!.id)).issue.dependencies).toEqual([made[0]!.id]);

    for (const [text, code] of [
      ['{"title":"fine"}\n{"title":', "E_USAGE"],
      [
        '[{"title":"a","ref":"a","dependencies":["b"]},{"title":"b","ref":"b","dependencies":["a"]}]',
        "E_CYCLE",
      ],
      ['{"title":"x","colour":"red"}', "E_USAGE"],
      ['{"title":"x","dependencies":["nothing"]}', "E_NOT_FOUND"],
      ["", "E_USAGE"],
    ] as const) {
      fs.writeFileSync(file, text);
      const refused = await repo.askHere("agent:a", "issue", "create", "--from", file);
      expect(refused.error.code, `${refused}`).toBe(code);
    }
    expect((await repo.askHere("agent:a", "issue", "list")).data["issues"]).toHaveLength(2);
  });

  it("follows the states: what has ended comes back only by being reopened", async () => {
    const { id } = await make("Work");
    const { lease } = await repo.prepare("agent:a", "claim", "acquire", id);
    const started = await repo.ask("agent:a", "issue", "update", id, "--state", "in-progress");
    expect(started.data["issue"]).toMatchObject({
      state: "in_progress",
      stamp: { lease_id: lease.lease_id },
    });
    expect(
      (await repo.askHere("agent:a", "issue", "update", id, "--state", "in_progress")).data["changed"],
    ).toBe(false);
    await repo.prepare("agent:a", "issue", "update", id, "--state", "done");
    expectRefused(
      await repo.run("agent:a", "issue", "update", id, "--state", "ready"),
      5,
      "E_TERMINAL_STATE",
    );
    // Claimed as it is, it is in progress at once.
    expect((await repo.ask("agent:a", "issue", "reopen", id)).data["issue"]).toMatchObject({
      state: "in_progress",
    });
    expect((await shown(id)).issue.state).toBe("in_progress");
    expectRefused(await repo.runHere("agent:a", "issue", "update", id, "--state", "asleep"), 64, "E_USAGE");
    expectRefused(await repo.runHere("agent:a", "issue", "update", id), 64, "E_USAGE");
    expectRefused(await repo.runHere("agent:a", "issue", "reject", id), 64, "E_USAGE");
  });

  it("an issue that has ended can be claimed to bring it back, and only then", async () => {
    const { id } = await make("Work");
    await repo.prepare("agent:a", "claim", "acquire", id);
    await repo.prepare("agent:a", "issue", "update", id, "--state", "done");
    await repo.prepare("agent:a", "claim", "release", id);
    expectRefused(await repo.run("agent:b", "claim", "acquire", id), 5, "E_TERMINAL_STATE");
    expect((await repo.run("agent:b", "claim", "acquire", id, "--reopen")).status).toBe(0);
    expect((await repo.runHere("agent:b", "issue", "reopen", id)).status).toBe(0);
  });

  it("keeps one label in a namespace that has one at most", async () => {
    const { id } = await make("Work", "--label", "type:bug", "--label", "area:login", "--claim");
    expect([...(await shown(id)).issue.labels].sort()).toEqual(["area:login", "type:bug"]);
    await repo.ask("human:ada", "label", "add", id, "type:story");
    expect([...(await shown(id)).issue.labels].sort()).toEqual(["area:login", "type:story"]);
    expectRefused(await repo.runHere("human:ada", "label", "add", id, "no label"), 64, "E_USAGE");
    expectRefused(await repo.runHere("human:ada", "label", "add", id, "type:a", "type:b"), 64, "E_USAGE");
  });

  it("with one request id is done once, and says so", async () => {
    const { id } = await make("Work", "--claim");
    const request = "01KZZZZZZZZZZZZZZZZZZZZZZZ".replace(/^.{10}/, id.slice(0, 10));
    const once = ["issue", "update", id, "--title", "Once", "--request-id", request];
    expect((await repo.ask("human:ada", ...once)).data).toMatchObject({ changed: true, replayed: false });
    expect((await repo.ask("human:ada", ...once)).data).toMatchObject({ changed: false, replayed: true });
    expect((await shown(id)).issue.stamp.version).toBe(2);
  });
});
