import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../house/source";
import { shellWords } from "../support/hints";
import { TestRepo } from "../support/repo";
import { commandsOf } from "./console";

const page = (name: string) => readFileSync(join(ROOT, "docs", name), "utf8").replaceAll(/\s+/g, " ");

it("PLAYBOOK and ISSUES do not promise what a crashed holder has locked or claimed before its time is up", async () => {
  expect(page("PLAYBOOK.md")).not.toContain("dead holder blocks nobody");
  expect(page("PLAYBOOK.md")).toContain("ends with its time, not with the process");
  expect(page("ISSUES.md")).toContain("stands until its time is up, or a person ends it");
  const repo = TestRepo.make();
  repo.write("src/app.ts");
  const id = await repo.issue();
  // The process that took it is gone as soon as it has answered.
  for (const words of [
    ["claim", "acquire", id],
    ["lock", "acquire", "src/app.ts"],
  ]) {
    const { lease } = (await repo.ask("agent:bob", ...words, "--ttl", "60")).data;
    const refused = await repo.askHere("agent:ada", ...words);
    expect(refused).toMatchObject({ status: 1, error: { code: "E_LOCK_CONFLICT" } });
    expect(refused.error.message).toContain(lease.expires_at);
  }
  const [section] = readFileSync(join(ROOT, "docs/PLAYBOOK.md"), "utf8")
    .split("\n## It is held, and nobody is there\n")[1]!
    .split("\n## ");
  const [steal] = commandsOf(section!);
  expect(await repo.runHere("", ...shellWords(steal!.command).slice(1))).toMatchObject({ status: 0 });
  expect(await repo.askAt(61, "agent:ada", "claim", "acquire", id)).toMatchObject({ status: 0 });
});
