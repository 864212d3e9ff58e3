import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";
import { HARNESSES } from "../../src/features/guard/harness";
import { readEvent } from "../../src/features/guard/report";
import { answerEvent } from "../../src/features/guard/run";
import type { Git } from "../../src/platform/git";
import { nodePlatform } from "../../src/platform/node/node";
import type { Files, Processes } from "../../src/platform/platform";
import { GuardedAgent, SILENT } from "../support/guard";
import { TestRepo } from "../support/repo";

/** The same, but for some of its methods. */
function instead<T extends object>(all: T, some: Partial<T>): T {
  const known = some as Record<string | symbol, unknown>;
  return new Proxy(all, {
    get: (_, name) => {
      if (Object.hasOwn(some, name)) return known[name];
      const value: unknown = Reflect.get(all, name);
      return typeof value === "function" ? value.bind(all) : value;
    },
  });
}

/** Answers one event of an agent, and says what was looked up for it. */
async function looksOf(repo: TestRepo, tool: string, input: object) {
  const { world } = new GuardedAgent(repo, { session: "aaaaaaaa-0000", pid: process.pid });
  const looks = { configs: [] as string[], processes: [] as number[], gits: [] as string[] };
  const { files, processes } = nodePlatform();
  const readFile: Files["readFile"] = (file) => {
    if (file.endsWith("/.git/config")) looks.configs.push(file);
    return files.readFile(file);
  };
  const identify: Processes["identify"] = (pid) => {
    looks.processes.push(pid);
    return processes.identify(pid);
  };
  const git: Git = {
    run: (args, options) => {
      looks.gits.push(args.join(" "));
      return world.git.run(args, options);
    },
  };
  const platform = {
    ...world.platform,
    files: instead(files, { readFile }),
    processes: instead(processes, { identify }),
  };
  const document = {
    session_id: "aaaaaaaa-0000",
    cwd: repo.root,
    hook_event_name: HARNESSES.claude.events[0]!.name,
    tool_name: tool,
    tool_input: input,
  };
  const call = { harness: "claude", event: null, patienceMs: 10_000 } as const;
  const event = readEvent(call, { document });
  expect(await answerEvent({ ...world, platform, git }, call, event)).toEqual(SILENT);
  expect(fs.existsSync(path.join(repo.control, "guard/failures.jsonl"))).toBe(false);
  return looks;
}

it("one event finds its repository, its process and what Git says of it once", async () => {
  const repo = TestRepo.make();
  repo.write("a.txt", "one\n");
  await repo.prepare("human:me", "init");
  repo.addWorktree("other");
  const file = await looksOf(repo, "Edit", { file_path: path.join(repo.root, "a.txt") });
  expect([file.configs.length, file.processes.length, file.gits.length]).toEqual([1, 1, 0]);
  // It is judged as a move of the checkout, leased, and compared afterwards.
  const shell = await looksOf(repo, "Bash", { command: "git add a.txt && make && echo x > a.txt" });
  expect([shell.configs.length, shell.processes.length]).toEqual([1, 1]);
  expect(shell.gits).toEqual([...new Set(shell.gits)]);
});
