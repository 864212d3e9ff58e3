import * as fs from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { scratch } from "../support/scratch";
import { FreshProgram } from "./injection/program";
import { complaints, type Layer, prove } from "./layer";

const layer = (body: Layer["prove"]): Layer => ({
  name: "a layer",
  unit: "tries",
  inTest: 1,
  inVerify: 1,
  share: 0,
  mustMove: ["what takes longer"],
  prove: body,
});

it("a layer ends when its time is up, and says what it had no time for", async () => {
  let endings = 0;
  const endless = layer(async (task) => {
    for (; task.goesOn; task.tried++) await new Promise((resolve) => setTimeout(resolve, 1));
    endings++;
  });
  const result = await prove(endless, { least: Number.MAX_SAFE_INTEGER, forMs: 60_000, atMostMs: 30 });
  expect(result).toMatchObject({ isCutShort: true, unmoved: ["what takes longer"] });
  expect(endings, "it ended by itself, and was not dropped").toBe(1);
  expect(complaints(result)).toEqual([]);
  const short = await prove(endless, { least: 2 });
  expect(complaints(short)).toEqual([expect.stringContaining("never happened: what takes longer")]);
});

it("a layer that is in the middle of something when its time is up is dropped, and what it found counts", async () => {
  const stuck = layer(async (task) => {
    task.tried++;
    task.broke("what it found", "again");
    await new Promise(() => {});
  });
  const result = await prove(stuck, { least: 2, atMostMs: 1 });
  expect(result).toMatchObject({ isCutShort: true, tried: 1, broke: [{ what: "what it found" }] });
});

it("a layer that dies has failed, with what it was trying", async () => {
  const dying = layer(async (task) => {
    task.tried++;
    throw new Error("the hand, asked for this and that: ended with SIGABRT");
  });
  const result = await prove(dying, { least: 10 });
  expect(result.tried).toBe(1);
  expect(complaints(result)[0]).toContain("asked for this and that: ended with SIGABRT");
});

it("a command that is run in the layer's own process leaves no ear behind, which would keep all of it in memory", async () => {
  const file = join(scratch(), "program.cjs");
  fs.writeFileSync(
    file,
    `process.on("unhandledRejection", () => {}); process.once("SIGUSR2", () => {}); process.exit(0);`,
  );
  const before = process.eventNames().map((name) => [name, process.listenerCount(name)]);
  const { exit, argv } = process;
  const given = [...argv];
  const where = process.cwd();
  try {
    const program = new FreshProgram(file, scratch());
    for (let i = 0; i < 3; i++) expect((await program.run("agent:a", [])).status).toBe(0);
    expect(process.eventNames().map((name) => [name, process.listenerCount(name)])).toEqual(before);
  } finally {
    process.exit = exit;
    argv.splice(0, argv.length, ...given);
    process.chdir(where);
  }
});
