import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect } from "vitest";
import { HookedRepo } from "../support/hooks";
import { oneIn } from "../support/one-in";
import type { TestRepo } from "../support/repo";

const it = oneIn(8);

let hooked: HookedRepo;
let repo: TestRepo;
let file: string;
beforeEach(async () => {
  hooked = await HookedRepo.make();
  repo = hooked.repo;
  file = path.join(repo.root, ".cotenant/config.toml");
  await repo.prepare("agent:a", "hooks", "install");
});

const unreadable = () => repo.log().filter(({ event_type }) => event_type === "policy.unreadable");

function gone(at: string): string {
  fs.rmSync(at);
  return at;
}

const WAYS: [string, (file: string) => void][] = [
  ["does not parse", (at) => fs.writeFileSync(at, "<<<<<<< HEAD\n[enforce]\n")],
  ["has a key that nobody knows", (at) => fs.writeFileSync(at, "[enforce]\nno_such_key = 1\n")],
  ["has a value out of range", (at) => fs.writeFileSync(at, "[enforce]\ndeadline_secs = 0\n")],
  ["is a directory", (at) => fs.mkdirSync(gone(at))],
  ["is a link to a device that never ends", (at) => fs.symlinkSync("/dev/zero", gone(at))],
];

describe("hooks, once the repository's configuration breaks", () => {
  it.each(WAYS)(
    "because it %s, go by what it last said, say so, and put it on record once",
    async (_, breakIt) => {
      await repo.prepare("agent:b", "lock", "acquire", "a.txt");
      fs.writeFileSync(file, '[enforce]\non_failure = "closed"\n');
      expect((await hooked.commit("agent:a")).status).toBe(1);
      breakIt(file);
      for (let i = 0; i < 2; i++) {
        const refused = await hooked.commit("agent:a");
        expect(refused.status, `${refused}`).toBe(1);
        expect(refused.stderr).toContain("a.txt is held by agent:b");
        expect(refused.stderr).toContain("what it last said holds");
      }
      expect(unreadable()).toMatchObject([
        { payload: { in_force: "last_read" }, actor: { agent_id: "agent:a" } },
      ]);
    },
  );

  it("go on refusing what they cannot decide, where it last said so", async () => {
    fs.writeFileSync(file, '[enforce]\non_failure = "closed"\n');
    expect((await hooked.commit("agent:a")).status).toBe(0);
    fs.writeFileSync(file, "[enforce\n");
    // A store that nobody can read.
    fs.rmSync(path.join(repo.control, "locks"), { recursive: true, force: true });
    fs.writeFileSync(path.join(repo.control, "locks"), "");
    fs.rmSync(repo.logFile, { force: true });
    fs.mkdirSync(repo.logFile);
    const refused = await hooked.commit("agent:a");
    expect(refused.stderr).toContain("refused, as enforce.on_failure = closed says");
    expect(refused.status).toBe(1);
  });

  it("enforce what can be understood of it where it never could be read, also for somebody without a name", async () => {
    await repo.prepare("agent:b", "lock", "acquire", "a.txt");
    fs.writeFileSync(file, '[enforce]\non_failure = "closed"\nno_such_key = 1\n');
    const refused = await hooked.commit("");
    expect(refused.status, `${refused}`).toBe(1);
    expect(refused.stderr).toContain("only what can be understood of it holds");
    expect(unreadable()).toMatchObject([
      { payload: { in_force: "understood" }, actor: { agent_id: "agent:unknown" } },
    ]);
  });

  it("in a worktree that was made with the broken file, go by what the main one's last said", async () => {
    fs.writeFileSync(file, '[worktree]\nenforce_leases = "strict"\n[enforce]\non_failure = "closed"\n');
    await hooked.commit("agent:a");
    fs.writeFileSync(file, "[enforce\n");
    repo.git("add", "--all");
    repo.git("commit", "--quiet", "--no-verify", "--message", "broken");
    const other = hooked.at(repo.addWorktree("other"));
    const made = await other.commit("agent:c", {}, "c.txt");
    expect(made.stderr).toContain("what it last said holds");
  });

  it("are not switched off by a variable that means nothing either", async () => {
    await repo.prepare("agent:b", "lock", "acquire", "a.txt");
    const refused = await hooked.commit("agent:a", { COTENANT_ENFORCE_NO_SUCH: "1" });
    expect(refused.stderr).toContain("a.txt is held by agent:b");
    expect(refused.status).toBe(1);
  });
});

describe("every other command, once the configuration breaks", () => {
  it("says what is wrong with it and does nothing", async () => {
    fs.writeFileSync(file, "[enforce]\nno_such_key = 1\n");
    const refused = await repo.askHere("agent:a", "lock", "acquire", "a.txt");
    expect(refused.error).toMatchObject({ code: "E_CONFIG" });
    expect(unreadable()).toEqual([]);
  });
});
