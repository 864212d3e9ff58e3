import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { expect, it } from "vitest";
import { ROOT } from "../house/source";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";
import { commandsOf, difference } from "./console";

it("AGENTS shows rules of paths, in commands that answer as shown", () => {
  const guard = readFileSync(join(ROOT, "docs/AGENTS.md"), "utf8");
  const section = guard.split("\n## Which agents may write where\n")[1]!.split("\n## ")[0]!;
  const repo = TestRepo.make(join(scratch(), "shop"));
  repo.write("src/app.ts");
  repo.write(".cotenant/config.toml", "[policy]\n");
  const env = {
    ...process.env,
    COTENANT_AGENT_ID: "human:me",
    PATH: [join(ROOT, "bin"), process.env["PATH"]].join(delimiter),
  };
  const commands = commandsOf(section);
  expect(commands).toHaveLength(4);
  for (const { command, exit, answer } of commands) {
    const { status, stdout, stderr } = spawnSync("bash", ["-c", command], {
      cwd: repo.root,
      env,
      encoding: "utf8",
    });
    const given = `${stdout}${stderr}`.replace(`${repo.root}/`, "…/");
    expect(status, `${command}\n${given}`).toBe(exit);
    expect(difference(answer, given.split("\n").slice(0, -1)), command).toBeNull();
  }
});
