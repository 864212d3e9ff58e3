import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { evenIfOvertaken } from "../../src/errors/overtaken";
import { CLIENT_HOOKS, findBlock } from "../../src/features/hooks/installation/block";
import { applyInstall, applyUninstall } from "../../src/features/hooks/installation/install";
import { lookAtHooks } from "../../src/features/hooks/installation/look";
import type { HooksHome } from "../../src/features/hooks/installation/place";
import { planInstall } from "../../src/features/hooks/installation/plan";
import { planUninstall } from "../../src/features/hooks/installation/removal";
import { isObjection } from "../../src/features/installer/files";
import { nodePlatform } from "../../src/platform/node/node";
import type { Platform } from "../../src/platform/platform";
import { dyingAt, interruptedAt } from "../support/dying-machine";
import { scratch } from "../support/scratch";

const git = { run: () => ({ status: 1, stdout: new Uint8Array(), stderr: "" }) };

function homeAt(gitDir: string): HooksHome {
  const { files } = nodePlatform();
  return { files, git, env: {}, gitDir, commonDir: gitDir, worktreeRoot: "/r", worktrees: [] };
}

async function install(
  home: HooksHome,
  platform: Platform,
  beforeWriting = async (): Promise<void> => {},
): Promise<void> {
  const wishes = { program: { node: "/node", program: "/cotenant" }, shared: false, force: false };
  const plan = planInstall(await lookAtHooks(home, CLIENT_HOOKS), wishes);
  if (isObjection(plan)) throw new Error(plan.message);
  await beforeWriting();
  await applyInstall(platform, plan);
}

async function uninstall(home: HooksHome, platform: Platform): Promise<void> {
  const how = { shared: false, force: false };
  const plan = planUninstall(await lookAtHooks(home, CLIENT_HOOKS), how);
  expect(plan.left).toEqual([]);
  await applyUninstall(platform, plan);
}

const THEIRS = { "pre-commit": "#!/bin/sh\necho hi", "prepare-commit-msg": "#!/usr/bin/perl\n" };

/** One shell script, one in another language, one link, and one that is not there. */
function make(): string {
  const gitDir = scratch();
  fs.mkdirSync(path.join(gitDir, "hooks"));
  for (const [name, text] of Object.entries(THEIRS))
    fs.writeFileSync(path.join(gitDir, "hooks", name), text, { mode: 0o755 });
  fs.writeFileSync(path.join(gitDir, "script"), "#!/bin/sh\n", { mode: 0o755 });
  fs.symlinkSync("../script", path.join(gitDir, "hooks/pre-push"));
  return gitDir;
}

/** Without unfinished files, which nobody runs and which go after a minute. */
function seen(gitDir: string): Record<string, string> {
  const hooks = path.join(gitDir, "hooks");
  const names = fs.readdirSync(hooks).filter((name) => !/\.new-[0-9a-f]{12}$/.test(name));
  return Object.fromEntries(
    names.sort().map((name) => {
      const file = path.join(hooks, name);
      const stat = fs.lstatSync(file);
      const what = stat.isSymbolicLink() ? `-> ${fs.readlinkSync(file)}` : fs.readFileSync(file, "utf8");
      return [name, `${(stat.mode & 0o777).toString(8)} ${what}`];
    }),
  );
}

/** At every instant each hook is theirs as it was, or has ours in it, whole. */
function expectWhole(gitDir: string, before: Record<string, string>): void {
  const now = seen(gitDir);
  for (const name of Object.keys(before)) {
    expect(Object.keys(now), "no hook goes missing").toContain(name);
    if (now[name] === before[name]) continue;
    const block = findBlock(now[name]!.slice(now[name]!.indexOf(" ") + 1));
    expect(block !== null && block !== "damaged", `${name}: ${now[name]}`).toBe(true);
  }
}

/** Dies at every change that there is, and answers how many there were. */
async function atEveryChange(act: (platform: Platform) => Promise<void>, after: () => Promise<void>) {
  for (let n = 1; n < 200; n++) {
    try {
      await act(dyingAt(n));
      return n - 1;
    } catch (error) {
      expect(String(error)).toMatch(/EDEAD|dead/);
    }
    await after();
  }
  throw new Error("it never ended");
}

describe("two installations at once", () => {
  it.each(["wholly within the other", "looking at what the other has half done"])("one %s", async (how) => {
    for (let n = 1; ; n++) {
      const gitDir = make();
      const home = homeAt(gitDir);
      const before = seen(gitDir);
      let isInterrupted = false;
      let wait = async () => {};
      const second = () => evenIfOvertaken(() => install(home, nodePlatform(), () => wait()));
      let secondOne = Promise.resolve();
      let firstIsDone = () => {};
      const platform = interruptedAt(n, async () => {
        isInterrupted = true;
        if (how.startsWith("wholly")) return second();
        const untilFirstIsDone = new Promise<void>((resolve) => {
          firstIsDone = resolve;
        });
        await new Promise<void>((hasLooked) => {
          wait = () => {
            hasLooked();
            return untilFirstIsDone;
          };
          secondOne = second();
        });
      });
      await evenIfOvertaken(() => install(home, platform));
      firstIsDone();
      await secondOne;
      if (!isInterrupted) return expect(n).toBeGreaterThan(15);
      for (const hook of CLIENT_HOOKS)
        expect(findBlock(seen(gitDir)[hook] ?? ""), `${n} ${hook}`).toBeTruthy();
      await uninstall(home, nodePlatform());
      expect(seen(gitDir), String(n)).toEqual(before);
    }
  });
});

describe("killed at any instant", () => {
  it("installing leaves whole hooks, and the next one finishes it", async () => {
    const gitDir = make();
    const home = homeAt(gitDir);
    const before = seen(gitDir);
    const deaths = await atEveryChange(
      (platform) => install(home, platform),
      async () => {
        expectWhole(gitDir, before);
        await uninstall(home, nodePlatform());
        expect(seen(gitDir)).toEqual(before);
      },
    );
    expect(deaths).toBeGreaterThan(15);
  });

  it("taking it out likewise", async () => {
    const gitDir = make();
    const home = homeAt(gitDir);
    const before = seen(gitDir);
    await install(home, nodePlatform());
    const deaths = await atEveryChange(
      (platform) => uninstall(home, platform),
      async () => {
        expectWhole(gitDir, before);
        await uninstall(home, nodePlatform());
        expect(seen(gitDir)).toEqual(before);
        await install(home, nodePlatform());
      },
    );
    expect(deaths).toBeGreaterThan(8);
    expect(seen(gitDir)).toEqual(before);
  });
});
