import * as fs from "node:fs";
import * as path from "node:path";
import { makeUlid } from "../../src/kernel/ids";
import { nodePlatform } from "../../src/platform/node/node";
import type { Ran } from "../support/program";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

export const A = "agent:a";

/** A repository with two files, on main. */
export function withFiles(where?: string): TestRepo {
  const repo = TestRepo.make(where);
  for (const name of ["src/a.ts", "src/b.ts"]) repo.write(name, `${name}\n`);
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return repo;
}

/** The name of a file that has this in it. */
export function file(content: string): string {
  const name = path.join(scratch(), "content");
  fs.writeFileSync(name, content);
  return name;
}

export function put(name: string, content: string): string[] {
  return ["--put", `${name}=${file(content)}`];
}

/** By agent:a, to work/x unless the arguments say otherwise. */
export function publish(repo: TestRepo, ...args: string[]): Promise<Ran> {
  return repo.ask(A, ...wordsToPublish(args));
}

/** The same without a process: for what comes before, and for more of it. */
export function publishHere(repo: TestRepo, ...args: string[]): Promise<Ran> {
  return repo.askHere(A, ...wordsToPublish(args));
}

function wordsToPublish(args: readonly string[]): string[] {
  const branch = args.includes("--branch") ? [] : ["--branch", "work/x"];
  return ["publish", ...branch, "--message", "Do it", ...args];
}

export function newRequestId(): string {
  const { clock, random } = nodePlatform();
  return makeUlid(clock.wallMs() as number, random.bytes(10) as Uint8Array);
}
