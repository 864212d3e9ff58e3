import { beforeEach, describe, expect } from "vitest";
import { Hub } from "../support/hub";
import { add, branchWith, LANDER, land, landingRepo, outcomes } from "../support/landing";
import { oneIn } from "../support/one-in";
import type { TestRepo } from "../support/repo";

const it = oneIn(4);

let repo: TestRepo;
beforeEach(() => {
  repo = landingRepo();
});

interface Aside {
  readonly branch: string;
  readonly why: string;
  readonly hint: string;
  readonly message: string;
}

const aside = (ran: { data: Record<string, unknown> }): readonly Aside[] =>
  (ran.data["entries"] as (Aside & { outcome: string })[]).filter(({ outcome }) => outcome === "parked");

/** Main and the branch change the same line. */
function conflicting(name: string, onto = "main"): void {
  branchWith(repo, name, { "a.txt": `${name}\n` });
  repo.git("checkout", "--quiet", onto);
  repo.write("a.txt", "theirs\n");
  repo.git("commit", "--quiet", "--all", "--message", "theirs");
  repo.git("checkout", "--quiet", "main");
}

/** Runs the commands that a hint has in brackets, and settles the conflict in the branch's favour. */
function settle(hint: string, branch: string): void {
  const line = /\((?:there: )?(git .*?)\)/.exec(hint)![1]!;
  repo.git("checkout", "--quiet", branch);
  for (const command of line.split(" && ")) {
    const [, ...words] = command.split(" ");
    try {
      repo.git(...words);
    } catch {
      // Git's way to say that there are conflicts.
    }
  }
  repo.write("a.txt", "both\n");
  repo.git("add", "a.txt");
  if (line.includes("rebase")) repo.git("-c", "core.editor=true", "rebase", "--continue");
  else repo.git("commit", "--quiet", "--no-edit");
  repo.git("checkout", "--quiet", "main");
}

/** As the hint says it. */
async function addAgain(hint: string): Promise<void> {
  const words = /cotenant (land add .*)$/.exec(hint)![1]!.split(" ");
  await repo.prepare("agent:worker", ...words);
}

describe("an entry that was put aside lands once the branch was mended as its hint says", () => {
  for (const method of ["merge", "squash", "rebase"])
    it(`by ${method}`, async () => {
      conflicting("one");
      await add(repo, "one", "--method", method, "--message", "What it is for");
      const { why, hint } = aside(await land(repo))[0]!;
      expect(why).toBe("conflict");
      settle(hint, "one");
      await addAgain(hint);
      expect(outcomes(await land(repo))).toEqual({ one: "landed" });
      const subject = method === "rebase" ? "one: change 1" : "What it is for";
      expect(repo.git("log", "-1", "--format=%s", "main").trim()).toBe(subject);
    });

  it("on a target that is not the usual one, and where the remote is ahead", async () => {
    const hub = new Hub();
    repo.git("remote", "add", "origin", hub.path);
    repo.git("branch", "release");
    conflicting("one", "release");
    repo.git("push", "--quiet", "origin", "main", "release");
    repo.git("branch", "--force", "release", "release~");
    await add(repo, "one", "--target", "release");
    const run = () => land(repo, "--push", "--target", "release");
    const { hint } = aside(await run())[0]!;
    settle(hint, "one");
    await addAgain(hint);
    expect(outcomes(await run())).toEqual({ one: "landed" });
  });

  it("in a dry run, a conflict with what has not landed yet says so", async () => {
    branchWith(repo, "one", { "a.txt": "one\n" });
    branchWith(repo, "two", { "a.txt": "two\n" });
    await add(repo, "one", "two");
    const { message } = aside(await land(repo, "--dry-run"))[0]!;
    expect(message).toBe("conflicts with main in a.txt, or with what lands before it");
  });
});

describe("adding a branch again", () => {
  it("keeps how it was to land, unless it says otherwise", async () => {
    branchWith(repo, "one", { one: "1\n" });
    await add(repo, "one", "--method", "squash", "--message", "Words");
    branchWith(repo, "two", { two: "1\n" });
    repo.git("branch", "--force", "one", "two");
    const entry = async (...args: string[]) => {
      const { entries } = (await add(repo, "one", ...args)) as unknown as {
        entries: { entry: { method: string; message: string } }[];
      };
      return entries[0]!.entry;
    };
    expect(await entry()).toMatchObject({ method: "squash", message: "Words" });
    expect(await entry("--method", "merge", "--message", "Others")).toMatchObject({
      method: "merge",
      message: "Others",
    });
  });

  it("is not what --only is for: an entry that was put aside is named, with what to do", async () => {
    conflicting("one");
    await add(repo, "one");
    await land(repo);
    const ran = await repo.ask(LANDER, "land", "run", "--only", "one");
    expect(ran.error).toMatchObject({ code: "E_USAGE" });
    expect(ran.error.message).toBe("one was put aside: conflicts with main in a.txt");
    await repo.prepare("agent:worker", .../cotenant (.*)$/.exec(ran.error.hint)![1]!.split(" "));
    expect(outcomes(await repo.ask(LANDER, "land", "run", "--only", "one"))).toEqual({ one: "parked" });
  });
});
