import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import { expectJsonRefused, expectRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

/** Words, the exit status, the code. `ISSUE` stands for the id of an issue that agent:a has claimed. */
type Case = readonly [words: readonly string[], status: number, code: string];

const usage = (...words: string[]): Case => [words, 64, "E_USAGE"];
const limit = (...words: string[]): Case => [words, 9, "E_LIMIT"];
const leadsOut = (...words: string[]): Case => [words, 9, "E_PATH_ESCAPE"];
const policy = (...words: string[]): Case => [words, 9, "E_POLICY"];
const unknown = (...words: string[]): Case => [words, 4, "E_NOT_FOUND"];

const BAD_TTLS = ["-0", "", " ", "1e3", "0x10", "+5", "5 s", "٣", "99999999999999999999", "NaN"];
/** Commands that take a TTL. */
const WITH_TTL = [
  ["lock", "acquire", "a.ts"],
  ["lock", "steal", "a.ts", "--reason", "r"],
  ["lock", "renew", "a.ts"],
  ["claim", "acquire", "ISSUE"],
  ["claim", "renew", "ISSUE"],
];

const CASES: Readonly<Record<string, readonly Case[]>> = {
  TTLs: [
    ...BAD_TTLS.map((ttl) => usage("lock", "acquire", "a.ts", "--ttl", ttl)),
    ...["86401", "2592001"].map((ttl) => limit("lock", "acquire", "a.ts", "--ttl", ttl)),
    limit("lock", "acquire", "a.ts", "--ttl", "2592001", "--agent-id", "human:ada"),
    ...WITH_TTL.flatMap((command) => [
      ...["-1", "1.5", "abc"].map((ttl) => usage(...command, "--ttl", ttl)),
      usage(...command, "--ttl=-1"),
      usage(...command, "--ttl"),
      limit(...command, "--ttl", "999999999999999"),
    ]),
  ],
  "leases without expiry": [
    policy("lock", "acquire", "a.ts", "--ttl", "0"),
    policy("lock", "acquire", "a.ts", "--ttl", "0", "--reason", " "),
    policy("lock", "acquire", "a.ts", "--ttl", "0", "--reason", "r"),
    policy("lock", "steal", "--resource", "db", "--ttl", "0", "--reason", "r"),
    policy("claim", "acquire", "ISSUE", "--ttl", "0"),
  ],
  "request ids that nobody remembers": ["01ARZ3NDEKTSV4RRFFQ69G5FAV", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"].flatMap(
    (id) => [
      limit("lock", "acquire", "a.ts", "--request-id", id),
      limit("lock", "release", "a.ts", "--request-id", id),
      limit("claim", "renew", "ISSUE", "--request-id", id),
      limit("claim", "force-evict", "ISSUE", "--reason", "r", "--request-id", id),
    ],
  ),
  "waiting times": [
    usage("lock", "acquire", "a.ts", "--timeout", "5"),
    usage("lock", "acquire", "a.ts", "--wait", "--timeout", "soon"),
    usage("lock", "acquire", "a.ts", "--wait", "--timeout", "-1"),
    limit("lock", "acquire", "a.ts", "--wait", "--timeout", "604801"),
  ],
  "issue ids": ["acquire", "renew", "heartbeat", "release"].flatMap((verb) => [
    ...[
      "a b",
      "",
      "../../etc",
      "7x3k!",
      "issue:7x3k",
      "01ARZ3NDEKTSV4RRFFQ69G5FA",
      "ж",
      "-",
      "x".repeat(5_000),
    ].map((id) => usage("claim", verb, id)),
    usage("claim", verb),
    usage("claim", verb, "ISSUE", "ISSUE"),
  ]),
  "other ids": [
    usage("claim", "transfer", "ISSUE"),
    usage("claim", "transfer", "ISSUE", "--to-agent", "agent:b"),
    usage("claim", "transfer", "ISSUE", "--to-agent", "bob", "--reason", "r"),
    usage("claim", "transfer", "ISSUE", "--to-agent", "agent:b", "--to-worktree", "wt:main", "--reason", "r"),
    usage("claim", "force-evict", "ISSUE"),
    usage("claim", "status", "--agent", "bob"),
    usage("claim", "status", "--issue", "a b"),
    unknown("claim", "status", "--issue", "zzzz"),
    usage("issue", "show", "a b"),
    unknown("issue", "show", "zzzz"),
    ...["bob", "robot:bob", "agent:", "agent:a b", ":x", "agent:-x", `agent:${"x".repeat(101)}`].map((id) =>
      usage("lock", "acquire", "a.ts", "--agent-id", id),
    ),
    usage("lock", "acquire", "a.ts", "--session", "a b"),
    usage("lock", "acquire", "a.ts", "--request-id", "1"),
    usage("lock", "release", "a.ts", "--request-id", "01ARZ3NDEKTSV4RRFFQ69G5FAU!"),
  ],
  keys: [
    usage("lock", "acquire"),
    usage("lock", "acquire", ""),
    usage("lock", "acquire", "."),
    usage("lock", "acquire", "--dir"),
    usage("lock", "acquire", "--dir", "a-file"),
    usage("lock", "acquire", "a-file/below"),
    usage("lock", "acquire", "a-file/"),
    usage("lock", "acquire", "--resource", ""),
    usage("lock", "acquire", "--resource", " x"),
    usage("lock", "acquire", "--resource", "a\nb"),
    usage("lock", "acquire", "--resource", "x".repeat(201)),
    usage("lock", "acquire", "--ref", "main"),
    usage("lock", "acquire", "--ref", "refs/heads/a..b"),
    usage("lock", "acquire", "--ref", "refs/heads/a.lock"),
    usage("lock", "release"),
    unknown("lock", "release", "issue:zz"),
    usage("lock", "release", "ref:main"),
    usage("lock", "renew", "worktree:x"),
    usage("lock", "renew", "scope:No Scope"),
    limit("lock", "acquire", "x".repeat(256)),
    limit("lock", "acquire", "d/".repeat(1_100) + "x"),
    limit("lock", "acquire", "x".repeat(5_000)),
    leadsOut("lock", "acquire", "../x"),
    leadsOut("lock", "release", "file:../x"),
    leadsOut("lock", "status", "--path", "/etc"),
    usage("lock", "status", "--path", ""),
  ],
  "reasons, notes and secrets": [
    limit("lock", "acquire", "a.ts", "--reason", "r".repeat(1_001)),
    limit("lock", "acquire", "a.ts", "--note", "n".repeat(1_001)),
    limit("claim", "release", "ISSUE", "--reason", "r".repeat(1_001)),
    limit("claim", "force-evict", "ISSUE", "--reason", "r".repeat(1_001)),
    usage("claim", "renew", "ISSUE", "--override-max"),
    usage("claim", "renew", "ISSUE", "--override-max", "--reason", " "),
    usage("claim", "renew", "ISSUE", "--secret-file", "no-such-file"),
    usage("claim", "release", "ISSUE", "--secret-file", "."),
    usage("claim", "heartbeat", "ISSUE", "--token", "no-such-file"),
    usage("claim", "renew", "ISSUE", "--secret-file", "no\nfile"),
  ],
  "worktrees and harnesses": [
    ...["renew", "unlock"].map((verb) => limit("worktree", verb, "x".repeat(300))),
    usage("guard", "check", "--harness", "a\tb"),
    usage("snapshot", "--tag", "a\nb"),
  ],
  issues: [
    usage("issue", "create"),
    usage("issue", "create", "--title", ""),
    usage("issue", "create", "--title", "  "),
    usage("issue", "create", "--title", "a\nb"),
    usage("issue", "create", "--title", "t", "--priority", "urgent"),
    usage("issue", "create", "two", "words"),
    limit("issue", "create", "--title", "t".repeat(201)),
    usage("issue", "list", "--state", "open"),
    usage("init", "--enforce", "maybe"),
  ],
  "commands and words": [
    ...[
      "frobnicate",
      "__proto__",
      "constructor",
      "claim frobnicate! x",
      "lock frobnicate",
      "help frobnicate",
    ].map((c) => usage(...c.split(" "))),
    ...[
      "init",
      "status",
      "recover",
      "gc",
      "version",
      "demo",
      "claim status",
      "claim list",
      "lock status",
      "lock gc",
    ].map((command) => usage(...command.split(" "), "surplus")),
    ...["worktree info", "worktree list", "worktree init", "issue list"].map((command) =>
      usage(...command.split(" "), "surplus"),
    ),
    usage("issue", "show", "one", "two"),
    usage("issue", "show"),
  ],
};

describe("malformed input gets its code, exit status and hint, and nothing is written:", () => {
  const room = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "cotenant-words-")));
  let fresh: TestRepo;
  let used: TestRepo;
  let issue: string;
  beforeAll(async () => {
    // One where nothing was ever written, so that the least trace shows; one that has something to lose.
    fresh = TestRepo.make(path.join(room, "fresh"));
    used = TestRepo.make(path.join(room, "used"));
    for (const repo of [fresh, used]) repo.write("a-file");
    issue = await used.issue();
    await used.prepare("agent:a", "claim", "acquire", issue);
    await used.prepare("agent:a", "lock", "acquire", "a.ts");
  });
  afterAll(() => fs.rmSync(room, { recursive: true, force: true }));

  /** Commands whose bad words of a kind a process of its own has refused; more of them need none. */
  const started = new Set<string>();

  async function check(what: string, [words, status, code]: Case): Promise<void> {
    const repo = words.includes("ISSUE") ? used : fresh;
    const args = words.map((word) => (word === "ISSUE" ? issue : word));
    const before = repo.picture();
    const kind = [what, code, ...words.slice(0, 2)].join(" ");
    const ran = await (started.has(kind) ? repo.runHere("agent:a", ...args) : repo.run("agent:a", ...args));
    started.add(kind);
    expectRefused(ran, status, code);
    // The same words once more: a second process would say nothing that the first has not.
    expectJsonRefused(await repo.askHere("agent:a", ...args), status, code);
    expect(repo.picture()).toEqual(before);
  }

  for (const [what, cases] of Object.entries(CASES)) {
    describe(what, () => {
      it.each(cases.map((one) => [shown(one), one] as const))("%s", (_, one) => check(what, one));
    });
  }

  it("a file may be called like a flag", async () => {
    const repo = TestRepo.make();
    const { leases } = (
      await repo.start("agent:a", ["lock", "acquire", "--json", "--", "--dir", "--ttl", "-1"]).done
    ).data;
    expect(leases.map(({ key }) => key)).toEqual(["file:--dir", "file:--ttl", "file:-1"]);
  });

  it("more than 1,000 keys at once are refused", async () => {
    const repo = TestRepo.make();
    const files = Array.from({ length: 1_001 }, (_, i) => `f${i}`);
    expectJsonRefused(await repo.ask("agent:a", "lock", "acquire", ...files), 9, "E_LIMIT");
    expect((await repo.ask("agent:a", "lock", "status")).data.leases).toEqual([]);
  });
});

function shown([words, status]: Case): string {
  const text = words.map((word) => (/^[\w./:-]+$/.test(word) ? word : JSON.stringify(word))).join(" ");
  return `${status}: ${text.slice(0, 90)}`;
}

it.each([[["dispatch", "README"]], [["dispatch"]], [["dispatch", "--command", "true", "--agents", "0"]]])(
  "%j is refused for its words, and writes nothing",
  async (words) => {
    const repo = TestRepo.make();
    await repo.askHere("agent:a", "lock", "acquire", "a.ts");
    // Whoever writes remembers what the repository's own settings say.
    repo.write(".cotenant/config.toml", "[coordination]\ndefault_ttl_secs = 300\n");
    expectJsonRefused(await repo.askHere("human:ada", ...words), 64, "E_USAGE");
    expect(fs.existsSync(path.join(repo.control, "config"))).toBe(false);
  },
);
