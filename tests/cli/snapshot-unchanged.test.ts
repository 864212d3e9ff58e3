import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";
import { PROGRAM } from "../support/program";
import { TestRepo } from "../support/repo";
import { stride } from "../support/sample";

const LIBRARY = path.join(path.dirname(path.dirname(PROGRAM)), "dist/index.cjs");
/** What was written just before a snapshot is read again by the next one. */
const UNTIL_OLD_MS = 2_200;

/** Takes a snapshot and dies at its nth change of the disk, counted from when the tree has been looked at. */
const DYING = `
const fs = require("node:fs");
const { openRepository } = require(${JSON.stringify(LIBRARY)});
const nth = Number(process.argv[1]);
let count = 0;
let isCounting = false;
const changes = { mkdirSync: 1, openSync: 1, writeSync: 1, renameSync: 1, unlinkSync: 1, fsync: 1, fsyncSync: 1, fdatasyncSync: 1 };
for (const name of Object.keys(changes)) {
  const real = fs[name];
  fs[name] = (...args) => {
    const changesNothing = name === "openSync" && !(args[1] & fs.constants.O_CREAT);
    if (isCounting && !changesNothing && ++count === nth) process.kill(process.pid, "SIGKILL");
    return real(...args);
  };
}
const processes = require("node:child_process");
const { spawn } = processes;
let refWriters = 0;
processes.spawn = (file, args, ...rest) => {
  if (args.includes("update-ref")) refWriters++;
  return spawn(file, args, ...rest);
};
const { lstatSync } = fs;
fs.lstatSync = (...args) => {
  isCounting ||= String(args[0]).endsWith("src/a.ts");
  return lstatSync(...args);
};
(async () => {
  const repository = await openRepository({ cwd: process.cwd(), agentId: "agent:a", env: process.env });
  await repository.snapshot();
  console.log(JSON.stringify({ count, refWriters }));
})();
`;

function takeDying(repo: TestRepo, nth: number) {
  const ran = spawnSync(process.execPath, ["-e", DYING, "--", String(nth)], {
    cwd: repo.root,
    encoding: "utf8",
  });
  return { isKilled: ran.signal === "SIGKILL", said: ran.stdout + ran.stderr };
}

/** Every ref of a snapshot, and every snapshot that anybody sees. */
async function seen(repo: TestRepo) {
  const { snapshots } = (await repo.askHere("agent:b", "history", "--all")).data as unknown as {
    snapshots: { snapshot_id: string }[];
  };
  const refs = repo.git("for-each-ref", "--format=%(refname:lstrip=3)", "refs/cotenant/snapshots").trim();
  return { snapshots: snapshots.map(({ snapshot_id: id }) => id).sort(), refs: refs.split("\n").sort() };
}

it("of an unchanged tree needs no Git but the one that lists; killed at any change, it is there or not at all", {
  timeout: 300_000,
}, async () => {
  const repo = TestRepo.make();
  for (const file of ["src/a.ts", "src/b.ts"]) repo.write(file, "one\n");
  repo.git("add", ".");
  repo.git("commit", "--quiet", "--message", "first");
  await new Promise((resolve) => setTimeout(resolve, UNTIL_OLD_MS));
  expect((await repo.ask("agent:a", "snapshot")).status).toBe(0);
  const first = await seen(repo);
  expect(first.refs).toEqual(first.snapshots);

  let before = first;
  let deaths = 0;
  const { first: skipped, step } = stride(3);
  for (let nth = 1 + skipped; ; nth += step) {
    const { isKilled, said } = takeDying(repo, nth);
    if (!isKilled) {
      const { count, refWriters } = JSON.parse(said) as { count: number; refWriters: number };
      expect(count, "it went through").toBeLessThan(nth);
      expect(refWriters).toBe(0);
      break;
    }
    deaths++;
    const mended = await repo.askHere("agent:b", "doctor", "--strict", "--repair");
    expect(mended.status, `after ${nth}`).toBeLessThan(14);
    const after = await seen(repo);
    expect(after.refs, `refs after ${nth}`).toEqual(after.snapshots);
    expect(after.snapshots.length - before.snapshots.length, `death ${nth}`).toBeOneOf([0, 1]);
    expect((await repo.askHere("agent:b", "doctor", "--strict")).status, `whole after ${nth}`).toBe(0);
    before = after;
    for (const id of after.snapshots)
      expect(fs.readdirSync(path.join(repo.control, "snapshots", id)).sort()).toEqual([
        ".READY",
        "descriptor.json",
      ]);
  }
  // Objects, ref, descriptor, mark, and the lines about them.
  expect(deaths * step).toBeGreaterThan(20);
  expect((await repo.ask("agent:b", "doctor", "--strict")).status).toBe(0);
  repo.git("fsck", "--strict");
});
