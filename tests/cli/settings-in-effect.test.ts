import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { policyOf } from "../../src/config/load";
import { CONFIG_KEYS, type ConfigKey, nameInSection, settingOf, variableOf } from "../../src/config/schema";
import { lapse, rulesOf } from "../../src/features/ledger/rules";
import { standing } from "../../src/kernel/validity";
import { oneIn } from "../support/one-in";
import { type Ran, runHere } from "../support/program";
import { TestRepo } from "../support/repo";
import { gitWithDoor } from "../support/slow-git";

const it = oneIn(8);

/** Each setting and the test that shows what it does. A key that nothing shows is not to be in the schema. */
const SHOWN: Readonly<Record<Exclude<ConfigKey, Here>, string>> = {
  "guard.stop_idle_secs": "tests/scenarios/guard.test.ts",
  "guard.retry_secs": "tests/scenarios/guard.test.ts",
  "guard.retry": "tests/guard/contending.test.ts",
  "guard.across_worktrees": "tests/guard/living.test.ts",
  "guard.stay_in_worktree": "tests/guard/shared-checkout.test.ts",
  "guard.on_failure": "tests/guard/failing.test.ts",
  "guard.deadline_secs": "tests/guard/failing.test.ts",
  "gates.pass_by": "tests/cli/gates.test.ts",
  "types.hierarchy": "tests/cli/global-operations.test.ts",
  "types.strategic": "tests/cli/queries.test.ts",
  "coordination.default_ttl_secs": "tests/cli/config.test.ts",
  "coordination.lease_renewal_threshold_pct": "tests/cli/expiry-warnings.test.ts",
  "coordination.escalate_after_secs": "tests/cli/escalation.test.ts",
  "coordination.stale_threshold_secs": "tests/scenarios/claim-status.test.ts",
  "coordination.auto_renew_leases": "tests/cli/daemon.test.ts",
  "coordination.heartbeat_interval_secs": "tests/daemon/heart.test.ts",
  "daemon.autostart": "tests/cli/daemon.test.ts",
  "daemon.idle_exit_secs": "tests/cli/daemon.test.ts",
  "locks.max_age_secs": "tests/cli/doctor.test.ts",
  "policy.paths": "tests/cli/path-rules.test.ts",
  "policy.evict": "tests/scenarios/ending.test.ts",
  "policy.approvers": "tests/cli/approvals.test.ts",
  "store.rotate_bytes": "tests/demo/demo.test.ts",
  "store.busy_timeout_secs": "tests/cli/surroundings.test.ts",
  "sync.ledger_branch": "tests/scenarios/ledger-claims.test.ts",
  "sync.remote": "tests/ledger/transports.test.ts",
  "sync.claims_prefix": "tests/scenarios/ledger-data.test.ts",
  "sync.auto_claim_push": "tests/scenarios/ledger-offline.test.ts",
  "sync.claim_retries": "tests/scenarios/ledger-claims.test.ts",
  "sync.claim_timeout_hours": "tests/scenarios/ledger-offline.test.ts",
  "sync.offline_mode": "tests/scenarios/ledger-offline.test.ts",
  "sync.network_timeout": "tests/scenarios/ledger-claims.test.ts",
  "sync.global_path_override": "tests/scenarios/ledger-data.test.ts",
  "worktree.enforce_leases": "tests/scenarios/issue-writes.test.ts",
  "global_operations.require_main_history": "tests/cli/global-operations.test.ts",
  "global_operations.allowed_branches": "tests/cli/global-operations.test.ts",
  "global_operations.main_branch": "tests/cli/global-operations.test.ts",
  "worktree.copy": "tests/cli/worktree-create.test.ts",
  "worktree.setup": "tests/cli/worktree-create.test.ts",
  "snapshot.keep_automatic": "tests/cli/snapshot-contents.test.ts",
  "enforce.push": "tests/scenarios/hooks.test.ts",
  "enforce.on_failure": "tests/scenarios/hooks.test.ts",
  "publish.require_leases": "tests/cli/publish.test.ts",
  "publish.checks": "tests/cli/publish.test.ts",
  "policy.land": "tests/land/allowance.test.ts",
  "land.target": "tests/land/queue.test.ts",
  "land.method": "tests/land/methods.test.ts",
  "land.checks": "tests/land/run.test.ts",
  "land.check_timeout_secs": "tests/land/run.test.ts",
  "land.parallel": "tests/land/run.test.ts",
  "land.clean": "tests/land/cleaning.test.ts",
  "publish.max_paths": "tests/cli/publish.test.ts",
  "publish.retries": "tests/cli/publish.test.ts",
  "publish.wait_secs": "tests/scenarios/publish.test.ts",
  "publish.push_timeout_secs": "tests/cli/publish-push.test.ts",
  "publish.unfenced_remote": "tests/ledger/fence.test.ts",
};

/** Shown below, or with one value only. */
const HERE = [
  "sync.claim_ttl_secs",
  "sync.clock_skew_secs",
  "guard.unknown_ttl_secs",
  "issues.unique_labels",
  "coordination.max_indefinite_leases_per_agent",
  "coordination.max_indefinite_leases_per_repo",
  "coordination.max_total_secs",
  "coordination.backend",
  "locks.enable_metadata",
  "events.enable_sequences",
  "events.use_unified_envelope",
  "policy.indefinite",
  "policy.max_ttl_secs",
  "worktree.mode",
  "worktree.directory",
  "snapshot.ignored",
  "enforce.deadline_secs",
  "publish.protected",
  "publish.forbidden_paths",
  "publish.hot_resources",
  "publish.check_timeout_secs",
  "publish.allow_secrets_in",
  "publish.max_file_bytes",
] as const;
type Here = (typeof HERE)[number];

let repo: TestRepo;
beforeEach(() => {
  repo = TestRepo.make();
  repo.write("a.txt");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
});

const ask = (set: Partial<Record<ConfigKey, string>>, ...args: string[]): Promise<Ran> =>
  askAt(repo, set, ...args);

function askAt(at: TestRepo, set: Partial<Record<ConfigKey, string>>, ...args: string[]): Promise<Ran> {
  const variables = Object.entries(set).map(([key, value]) => [variableOf(key as ConfigKey), value]);
  const env = { COTENANT_AGENT_ID: "agent:a", ...Object.fromEntries(variables) };
  return runHere([...args, "--json"], { cwd: at.root, home: process.env["HOME"]!, env });
}

/** Refused by this setting, and not without it. */
async function expectRefusedBy(
  set: Partial<Record<ConfigKey, string>>,
  code: string,
  ...args: string[]
): Promise<void> {
  expect((await ask(set, ...args)).error, `${args}`).toMatchObject({ code });
  expect((await ask({}, ...args)).status, `${args}`).toBe(0);
}

describe("every setting", () => {
  it("is shown to have an effect by a test that names it", () => {
    for (const [key, file] of Object.entries(SHOWN)) {
      const text = fs.readFileSync(path.join(__dirname, "../..", file), "utf8");
      const names = [
        key,
        variableOf(key as ConfigKey),
        `${nameInSection(key)} = `,
        `"${nameInSection(key)}"`,
      ];
      expect(
        names.some((name) => text.includes(name)),
        `${key} in ${file}`,
      ).toBe(true);
    }
    expect([...Object.keys(SHOWN), ...HERE].sort()).toEqual([...CONFIG_KEYS].sort());
  });

  it("that accepts one value only says that of itself", () => {
    for (const key of ["coordination.backend", "locks.enable_metadata", "events.enable_sequences"] as const) {
      const setting = settingOf(key);
      expect(
        setting.type === "enum" ? setting.values.length === 1 : setting.type === "bool" && setting.only,
      ).toBe(true);
    }
  });
});

describe("settings about leases", () => {
  it("limit leases without expiry: policy.indefinite, coordination.max_indefinite_leases_per_agent and _per_repo", async () => {
    const [one, two] = [await repo.issue("one"), await repo.issue("two")];
    const forever = (id: string) => ["claim", "acquire", id, "--ttl", "0", "--reason", "long"];
    await expectRefusedBy({ "policy.indefinite": "scope" }, "E_POLICY", ...forever(one));
    for (const scope of ["agent", "repo"] as const) {
      const refused = await ask(
        { [`coordination.max_indefinite_leases_per_${scope}`]: "1" },
        ...forever(two),
      );
      expect(refused.error, scope).toMatchObject({ code: "E_LIMIT" });
    }
    expect((await ask({}, ...forever(two))).status).toBe(0);
  });

  it("limit how long they last: policy.max_ttl_secs, coordination.max_total_secs", async () => {
    await expectRefusedBy(
      { "policy.max_ttl_secs": "agent=60" },
      "E_LIMIT",
      "lock",
      "acquire",
      "a.txt",
      "--ttl",
      "61",
    );
    const { lease } = await ask({ "coordination.max_total_secs": "700" }, "lock", "acquire", "b.txt");
    expect(lease.max_total_secs).toBe(700);
    expect((await ask({}, "lock", "renew", "b.txt", "--ttl", "900")).error).toMatchObject({
      code: "E_LIMIT",
    });
    // What a command leases for its own duration fits in, however short that is.
    const brief = { "policy.max_ttl_secs": "agent=20" } as const;
    expect((await ask(brief, "config", "set", "guard.retry_secs", "9")).status).toBe(0);
    expect((await ask(brief, "lock", "acquire", "c.txt")).status).toBe(0);
    repo.write("c.txt", "c\n");
    const publish = ["publish", "--branch", "topic", "--message", "c", "--from-worktree", "c.txt"];
    expect((await ask(brief, ...publish)).status).toBe(0);
  });

  it("let go of a file whose process cannot be seen after guard.unknown_ttl_secs", async () => {
    const values = Object.fromEntries(CONFIG_KEYS.map((key) => [key, settingOf(key).default]));
    const policy = policyOf({ ...values, "guard.unknown_ttl_secs": 7 } as never);
    const at = (monotonicMs: number) => ({ wallMs: monotonicMs, clockId: "c", monotonicMs });
    const lease = { bind: "process", expiresAt: null, stopIdleAt: null, lastBeat: at(0) };
    const seen = (ms: number) => standing(lease as never, at(ms) as never, "unknown", policy);
    expect([seen(6_999), seen(7_001)]).toEqual(["valid", "expired"]);
  });

  it("say how long claims between machines last, and others wait: sync.claim_ttl_secs, sync.clock_skew_secs", () => {
    const values = Object.fromEntries(CONFIG_KEYS.map((key) => [key, settingOf(key).default]));
    const rules = rulesOf({ ...values, "sync.claim_ttl_secs": 90, "sync.clock_skew_secs": 7 } as never);
    expect(rules.ttlMs).toBe(90_000);
    const seen = (nowMs: number) => lapse({ expiresAtMs: 0, beatAtMs: 0 } as never, nowMs, rules);
    expect([seen(7_000), seen(7_001)]).toEqual([null, "expired"]);
  });

  it("replace a label of the same namespace where issues.unique_labels says so", async () => {
    const labelled = async (set: Partial<Record<ConfigKey, string>>) => {
      const { data } = await ask(set, "issue", "create", "--title", "x", "--label", "area:one");
      await ask({}, "claim", "acquire", data.issue.id);
      await ask(set, "label", "add", data.issue.id, "area:two");
      const shown = (await ask({}, "issue", "show", data.issue.id)).data.issue as { labels?: string[] };
      return shown.labels;
    };
    expect(await labelled({})).toEqual(["area:one", "area:two"]);
    expect(await labelled({ "issues.unique_labels": "area" })).toEqual(["area:two"]);
  });
});

describe("worktree.mode", () => {
  it("on: issues are claimed in linked worktrees only, and not worked on outside Git", async () => {
    const id = await repo.issue();
    const on = { "worktree.mode": "on" } as const;
    const refused = await ask(on, "claim", "acquire", id);
    expect(refused.error).toMatchObject({ code: "E_POLICY", data: { setting: "worktree.mode" } });
    const [, line] = /'cotenant ([^']+)'/.exec(refused.error!.hint)!;
    const made = await ask(on, ...line!.split(" "));
    expect(made.status, `${made}`).toBe(0);
    expect((await ask({}, "claim", "status", "--issue", id)).data.leases).toHaveLength(1);
    const outside = await runHere(["issue", "create", "--title", "x", "--json"], {
      cwd: path.dirname(repo.root),
      home: process.env["HOME"]!,
      env: { COTENANT_WORKTREE_MODE: "on" },
    });
    expect(outside.error).toMatchObject({ code: "E_NOT_A_REPO" });
  });

  it("off: only the files of this directory count, and no worktrees are made", async () => {
    const id = await repo.issue();
    const other = repo.addWorktree("other");
    const off = { "worktree.mode": "off" } as const;
    expect((await askAt(other, {}, "issue", "show", id)).status).toBe(0);
    expect((await askAt(other, off, "issue", "show", id)).error).toMatchObject({ code: "E_NOT_FOUND" });
    expect((await ask(off, "issue", "show", id)).status).toBe(0);
    expect((await ask(off, "worktree", "create", "more")).error).toMatchObject({ code: "E_POLICY" });
    await ask(off, "claim", "acquire", id);
    expect((await ask(off, "issue", "update", id, "--title", "Renamed")).status).toBe(0);
    expect((await askAt(other, {}, "issue", "show", id)).data.issue.title).toBe("Renamed");
  });

  it("worktree.directory: where new ones go", async () => {
    const { data } = await ask({ "worktree.directory": "../elsewhere" }, "worktree", "create", "work/x");
    expect(path.dirname(data.worktree.root)).toBe(
      path.join(fs.realpathSync(path.dirname(repo.root)), "elsewhere"),
    );
  });
});

describe("settings about what is kept and published", () => {
  it("snapshot.ignored: whether snapshots hold what Git ignores", async () => {
    repo.write(".gitignore", "*.log\n");
    repo.write("debug.log", "secret\n");
    const holds = async (set: Partial<Record<ConfigKey, string>>, note: string) => {
      repo.write("a.txt", note);
      const { data } = await ask(set, "snapshot", "-m", note);
      return repo
        .git(
          "ls-tree",
          "-r",
          "--name-only",
          `refs/cotenant/snapshots/${(data["snapshot"] as { snapshot_id: string }).snapshot_id}`,
        )
        .includes("debug.log");
    };
    expect([await holds({}, "without"), await holds({ "snapshot.ignored": "true" }, "with")]).toEqual([
      false,
      true,
    ]);
  });

  const put = (name: string, content = "x\n") => {
    const file = path.join(repo.root, "../content");
    fs.writeFileSync(file, content);
    return ["publish", "--message", "Do it", "--put", `${name}=${file}`];
  };

  it("publish.protected, publish.forbidden_paths, publish.max_file_bytes: what is refused", async () => {
    await ask({}, "lock", "acquire", "--dir", ".");
    await expectRefusedBy(
      { "publish.protected": "work/x" },
      "E_PROTECTED_REF",
      ...put("a.txt"),
      "--branch",
      "work/x",
    );
    await expectRefusedBy(
      { "publish.forbidden_paths": "infra/" },
      "E_POLICY",
      ...put("infra/x"),
      "--branch",
      "work/y",
    );
    await expectRefusedBy(
      { "publish.max_file_bytes": "1" },
      "E_LIMIT",
      ...put("big.txt"),
      "--branch",
      "work/z",
    );
  });

  it("publish.allow_secrets_in: where what looks like a secret is let through", async () => {
    await ask({}, "lock", "acquire", "--dir", ".");
    const key = `ghp_${"a1B2".repeat(9)}\n`;
    const args = [...put("tests/key.pem", key), "--branch", "work/x"];
    expect((await ask({}, ...args)).error).toMatchObject({ code: "E_SECRET_FOUND" });
    expect((await ask({ "publish.allow_secrets_in": "tests/" }, ...args)).status).toBe(0);
  });

  it("publish.check_timeout_secs: how long a check may take", async () => {
    await ask({}, "lock", "acquire", "--dir", ".");
    const args = [...put("a.txt", "new\n"), "--branch", "work/x"];
    const slow = await ask({ "publish.checks": "sleep 60", "publish.check_timeout_secs": "1" }, ...args);
    expect(slow.status).not.toBe(0);
    expect(slow.error!.message).toContain("took too long");
  });

  it("publish.hot_resources: leasing the name leases the paths", async () => {
    const { data } = await ask(
      { "publish.hot_resources": "site=docs/:README.md" },
      "lock",
      "acquire",
      "--resource",
      "site",
    );
    const keys = data.leases.map(({ key }) => key).sort();
    expect(keys).toEqual(["dir:docs", "file:README.md", "resource:site"]);
  });

  it("enforce.deadline_secs: how long a Git hook may take", async () => {
    await ask({}, "lock", "acquire", "b.txt");
    repo.write("a.txt", "changed\n");
    repo.git("add", "a.txt");
    const { env } = gitWithDoor("", "sleep 3");
    const set = { COTENANT_ENFORCE_DEADLINE_SECS: "1", COTENANT_ENFORCE_ON_FAILURE: "closed" };
    const refused = await repo.start("agent:a", ["hook", "pre-commit"], { env: { ...env, ...set } }).done;
    expect(refused.stderr).toContain("no answer within 1 s");
    expect(refused.status).toBe(1);
  });
});
