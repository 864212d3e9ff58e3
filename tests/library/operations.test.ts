import { expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands";
import type { CotenantError } from "../../src/errors/cotenant-error";
import { openRepository } from "../../src/index";
import { OPERATIONS } from "../../src/operations";
import { TestRepo } from "../support/repo";

/** Of a terminal, of a process of its own, or called by Git and by shells only. */
const NONE = /^(?:demo|completion|complete|version|merge-issue|daemon (?:run|install)|hook .+)$/;

it("every command has its operation in the library, by its own words", async () => {
  const missing: string[] = [];
  for (const name of Object.keys(COMMANDS).filter((command) => !NONE.test(command))) {
    const [word = "", verb] = name
      .split(" ")
      .map((part) => part.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()));
    const found = await OPERATIONS[word as keyof typeof OPERATIONS]?.();
    const operation = verb === undefined ? found : (found as Record<string, unknown> | undefined)?.[verb];
    if (typeof operation !== "function") missing.push(name);
  }
  expect(missing).toEqual([]);
});

it("and none of them is another word for nothing", async () => {
  const words = new Set(Object.keys(COMMANDS).map((name) => name.split(" ")[0]));
  expect(Object.keys(OPERATIONS).filter((word) => !words.has(word))).toEqual([]);
});

it("a request that is none is refused with a code, and so is an operation that is not there", async () => {
  const repo = TestRepo.make();
  repo.git("commit", "--quiet", "--allow-empty", "--message", "first");
  const repository = await openRepository({ cwd: repo.root, agentId: "agent:a", env: process.env });
  const { operations } = repository;
  const code = (act: Promise<unknown>) => act.then(null, (error: CotenantError) => error.code);
  const asked = operations as unknown as Record<
    string,
    Record<string, (given?: unknown) => Promise<unknown>>
  >;
  expect(await code(asked["claim"]!["nxt"]!())).toBe("E_USAGE");
  expect(await code(asked["claim"]!["next"]!())).toBe("E_NOT_FOUND");
  expect(await code(asked["claim"]!["next"]!({ types: 5 }))).toBe("E_INTERNAL");
  expect(await code(asked["lock"]!["release"]!())).toBe("E_USAGE");
  const changes = [{ op: "add", path: "a.txt" }];
  const wrong = { branch: "work", message: "x", changes } as never;
  expect(await code(operations.publish(wrong))).toBe("E_USAGE");
  await repository.close();
});

it("a lease says on which branch its holder was when it was taken, however long the repository is open", async () => {
  const repo = TestRepo.make();
  repo.write("a.txt");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  const repository = await openRepository({ cwd: repo.root, agentId: "agent:a", env: process.env });
  const { operations } = repository;
  const branchOf = async (name: string) =>
    (await operations.lock.acquire({ names: [name] })).leases.map(({ branch }) => branch);
  expect(await branchOf("a.txt")).toEqual(["main"]);
  repo.git("switch", "--quiet", "--create", "topic");
  expect(await branchOf("b.txt")).toEqual(["topic"]);
  await repository.close();
});
