import * as path from "node:path";
import { describe, expect } from "vitest";
import { COMMANDS } from "../../src/cli/commands";
import { findCommand, LISTED } from "../../src/cli/lookup";
import { keptScratch } from "../docs/kept-scratch";
import { oneIn } from "../support/one-in";
import { PROGRAM, type Ran, runHere, start, until } from "../support/program";
import { TestRepo } from "../support/repo";
import { TRIES_ALL } from "../support/sample";
import { scratch } from "../support/scratch";

const it = oneIn(8);

/** The issue that examples speak of as 7x3k. */
const ISSUE = "01M7F87SKQ7X3KZ979XRC4S87G";
/** And the other one, 9k2m. */
const OTHER = "01M7F87SKQ9K2MZ979XRC4S87G";

const CLAIMED = ["init", "claim acquire 7x3k"];
const WITH_GATES = [
  "init",
  "gate define tests --command true --agent-id human:me",
  "gate define review",
  "claim acquire 7x3k",
];
const WITH_DOCUMENT = ["init", "claim acquire 7x3k", "doc add 7x3k docs/login.md"];

/** What must have happened before a command's examples make sense. Without a line here: `init`. */
const BEFORE: Readonly<Record<string, readonly string[]>> = {
  init: [],
  "claim renew": ["init", "claim acquire 7x3k"],
  "claim heartbeat": ["init", "claim acquire 7x3k"],
  "claim release": ["init", "claim acquire 7x3k"],
  "claim transfer": ["init", "claim acquire 7x3k"],
  "claim force-evict": [
    "init",
    "claim acquire 7x3k --agent-id agent:bob",
    "lock acquire src/app.ts --agent-id agent:bob",
  ],
  "claim approve": [
    "init",
    "claim acquire 7x3k --agent-id agent:bob",
    "config set policy.approvers 1",
    "claim force-evict 7x3k --reason gone --agent-id human:ada # exits 11",
  ],
  "issue update": CLAIMED,
  "issue delete": CLAIMED,
  "issue assign": CLAIMED,
  "issue unassign": CLAIMED,
  "issue reject": CLAIMED,
  "issue reopen": [...CLAIMED, "issue update 7x3k --state done"],
  "dep add": CLAIMED,
  "dep rm": [...CLAIMED, "dep add 7x3k 9k2m"],
  "label add": CLAIMED,
  "label rm": [...CLAIMED, "label add 7x3k area:login"],
  sync: ["init", "config set sync.ledger_branch cotenant-sync", "trust --agent-id human:me"],
  "lock renew": ["init", "lock acquire src/app.ts --dir src/api"],
  "lock release": ["init", "lock acquire src/app.ts --dir src/api"],
  "lock steal": ["init", "lock acquire src/app.ts --agent-id agent:bob"],
  "config reset": ["init", "config set coordination.default_ttl_secs 1200"],
  "gate list": ["init", "gate define review"],
  "gate show": [...WITH_GATES, "gate add 7x3k tests"],
  "gate remove": [...WITH_GATES, "gate add 7x3k tests"],
  "gate add": WITH_GATES,
  "gate pass": [...WITH_GATES, "gate add 7x3k review"],
  "gate fail": [...WITH_GATES, "gate add 7x3k review"],
  "gate run": [...WITH_GATES, "gate add 7x3k tests"],
  "doc add": ["init", "claim acquire 7x3k"],
  "doc list": WITH_DOCUMENT,
  "doc show": WITH_DOCUMENT,
  "doc history": WITH_DOCUMENT,
  "doc remove": WITH_DOCUMENT,
  "worktree renew": ["init", "worktree lock"],
  "worktree unlock": ["init", "worktree lock"],
  "worktree remove": ["init", "worktree create work/login"],
  "snapshot diff": ["init", "snapshot"],
  restore: ["init", "snapshot"],
  publish: ["init", "lock acquire src/app.ts docs/login.md"],
  "land add": ["init", "worktree create work/login", "worktree create work/docs"],
  "land remove": ["init", "worktree create work/login", "land add work/login"],
  "land retry": ["init", "worktree create work/login", "land add work/login"],
  "land run": ["init", "worktree create work/login", "land add work/login"],
  events: ["init", "lock acquire src/app.ts"],
  stats: ["init", "lock acquire src/app.ts"],
};

/** Made once, and copied for each command. */
const made = (() => {
  const repo = TestRepo.make(path.join(keptScratch("cotenant-examples"), "repo"));
  for (const file of ["src/app.ts", "src/app.test.ts", "src/api/index.ts", "docs/login.md"]) repo.write(file);
  repo.write("event.json", '{"hook_event_name":"PreToolUse","tool_name":"Read","tool_input":{}}');
  repo.git("add", "docs");
  repo.git("commit", "--quiet", "--message", "how to log in");
  const now = new Date().toISOString();
  const stamp = { version: 1, origin: "", lease_id: null, fencing_token: null, sequence: null };
  const times = { created_at: now, created_by: "", updated_at: now };
  const issue = { schema_version: 1, title: "Log in", description: "", state: "ready" };
  for (const id of [ISSUE, OTHER])
    repo.write(
      `.cotenant/issues/${id}/issue.json`,
      JSON.stringify({ ...issue, id, priority: "normal", assignee: null, ...times, stamp }),
    );
  return repo;
})();

function place() {
  const repo = made.copy();
  const env = {
    PATH: `${path.dirname(PROGRAM)}:${process.env["PATH"]}`,
    HOME: scratch(),
    COTENANT_AGENT_ID: "agent:ada",
  };
  return { repo, env };
}

type Place = ReturnType<typeof place>;

function withRemote(repo: TestRepo): void {
  repo.git("init", "--quiet", "--bare", "../hub.git");
  repo.git("remote", "add", "origin", "../hub.git");
}

/** Nothing in it that a shell reads otherwise than as words. */
const IS_PLAIN = /^cotenant [\w .,:/@=-]+$/;
/** These run on, or are about the process that they are in. */
const OWN_PROCESS = / --(?:follow|watch)\b|^cotenant (?:exec|demo|hook|guard|daemon)\b/;

/** In one process for all: what its first example has shown to start. */
function performHere(example: string, repo: TestRepo, env: Place["env"]): Promise<Ran> {
  // Whoever runs the tests may have harnesses on the PATH: no test starts them.
  const seen = example.includes(" --real") ? { ...env, PATH: path.dirname(PROGRAM) } : env;
  return runHere(example.split(" ").slice(1), { cwd: repo.root, env: seen, home: env.HOME });
}

/** As somebody would who copies it from the help into a shell; what runs on is ended as they would end it. */
async function performInShell(shown: string, repo: TestRepo, env: Place["env"]): Promise<Ran> {
  // Agents need no longer than this to begin, and all that they do has tests of its own.
  const example = shown.replace(/^(cotenant demo --seconds) \d+/, "$1 1");
  // One that is refused ends by itself, with a status that a signal just after its first line would take from it.
  const runsOn = / --(?:follow|watch)\b|daemon run/.test(example) && !/# exits \d+$/.test(example);
  const running = start(["/bin/sh", "-c", runsOn ? `exec ${example}` : example], { cwd: repo.root, env });
  if (runsOn) {
    await until(`${example} has said something`, () => (running.stdout + running.stderr).includes("\n"));
    running.kill("SIGINT");
  }
  return running.done;
}

describe("every example of every command's --help", () => {
  it.each(LISTED)("%s", async (name) => {
    const command = await COMMANDS[name]!.load();
    expect(command.examples.length).toBeGreaterThan(0);
    const { repo, env } = place();
    if (name === "sync") withRemote(repo);
    for (const line of BEFORE[name] ?? ["init"]) {
      const [words, exit = "0"] = line.split(" # exits ");
      const ran = await runHere([...words!.split(" "), "--quiet"], { cwd: repo.root, env, home: env.HOME });
      expect(ran.status, `${ran}`).toBe(Number(exit));
    }
    for (const [nth, example] of command.examples.entries()) {
      expect(findCommand(example.split(" ").slice(1))?.name, example).toBe(name);
      const isHere = (nth > 0 || !TRIES_ALL) && IS_PLAIN.test(example) && !OWN_PROCESS.test(example);
      const ran = await (isHere ? performHere : performInShell)(example, repo, env);
      // One that is meant to be refused says so at its end.
      const exit = Number(/# exits (\d+)$/.exec(example)?.[1] ?? 0);
      expect(ran.status, `${ran}`).toBe(exit);
      if (exit === 0) expect(ran.stderr, `${ran}`).not.toContain("(E_");
    }
    if (name === "daemon start") await performInShell("cotenant daemon stop", repo, env);
  });

  it("has no preparation for what is no command", () => {
    expect(Object.keys(BEFORE).filter((name) => !LISTED.includes(name))).toEqual([]);
  });
});
