import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { oneIn } from "../support/one-in";
import type { LeaseJson } from "../support/program";
import { expectJsonRefused } from "../support/refusals";
import { TestRepo } from "../support/repo";

const it = oneIn(5);

/** One lease of each kind, and what it must go on excluding. */
interface Held {
  readonly key: string;
  readonly take: readonly string[];
  readonly excludes: readonly (readonly string[])[];
}

const HELD: readonly Held[] = [
  {
    key: "file:src/a.ts",
    take: ["src/a.ts"],
    excludes: [["src/a.ts"], ["--dir", "src"], ["--dir", "."]],
  },
  {
    key: "file:src/deep/b.ts",
    take: ["src/deep/b.ts"],
    excludes: [["src/deep/b.ts"], ["--dir", "src/deep"]],
  },
  {
    key: "dir:lib/x",
    take: ["--dir", "lib/x"],
    excludes: [["lib/x/y/z.ts"], ["--dir", "lib/x"], ["--dir", "lib/x/y"], ["--dir", "lib"]],
  },
  { key: "resource:staging", take: ["--resource", "staging"], excludes: [["--resource", "staging"]] },
  { key: "ref:refs/heads/a", take: ["--ref", "refs/heads/a"], excludes: [["--ref", "refs/heads/a"]] },
];

type Harm = (file: string) => void;

const garbage: Harm = (file) => fs.writeFileSync(file, "\0garbage{".repeat(200));
const remove: Harm = (file) => fs.rmSync(file, { recursive: true });
const empty: Harm = (file) => fs.truncateSync(file);
const halve: Harm = (file) => fs.truncateSync(file, fs.statSync(file).size >> 1);

function filesOf(index: string): string[] {
  return fs
    .readdirSync(index, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
}

/** The one small file in which the index keeps a lease. */
function leaseFile(index: string, key: string): string {
  const found = filesOf(index).filter((file) => {
    const text = fs.readFileSync(file, "utf8");
    return text.includes(`"key":"${key}"`) && text.includes('"fencing_token"');
  });
  expect(found, `the file of ${key}`).toHaveLength(1);
  return found[0]!;
}

const each = (harm: Harm) => (index: string) => filesOf(index).forEach(harm);
const at = (name: string, harm: Harm) => (index: string) => harm(path.join(index, name));

const TO_ALL: readonly [string, Harm][] = [
  ["the index is deleted", remove],
  ["every file of it is truncated to nothing", each(empty)],
  ["every file of it is cut in half", each(halve)],
  ["every file of it is filled with garbage", each(garbage)],
  ["every file of it is deleted", each(remove)],
  ["'applied' is deleted", at("applied", remove)],
  ["'applied' is filled with garbage", at("applied", garbage)],
];

const TO_ONE: readonly [string, Held, Harm][] = HELD.flatMap((held): [string, Held, Harm][] => {
  const { key } = held;
  const file = (harm: Harm) => (index: string) => harm(leaseFile(index, key));
  const tree = (index: string) => path.relative(index, leaseFile(index, key)).split(path.sep)[0]!;
  return [
    [`the file of ${key} is deleted`, held, file(remove)],
    [`the file of ${key} is truncated`, held, file(empty)],
    [`the file of ${key} is garbage`, held, file(garbage)],
    [`the directory of ${key} is deleted`, held, file((lease) => remove(path.dirname(lease)))],
    [`the whole tree around ${key} is deleted`, held, (index) => remove(path.join(index, tree(index)))],
  ];
});

describe("S16: every lease is still there when", () => {
  const room = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "cotenant-index-")));
  const pristine = path.join(room, "pristine");
  let repo: TestRepo;
  let index: string;
  let leases: readonly LeaseJson[];
  let log: string;
  beforeAll(async () => {
    repo = TestRepo.make(path.join(room, "repo"));
    index = path.join(repo.control, "index");
    await repo.prepare("agent:a", "lock", "acquire", ...HELD.flatMap(({ take }) => take));
    ({ leases } = await repo.prepare("agent:b", "lock", "status"));
    fs.cpSync(index, pristine, { recursive: true });
    log = repo.logText();
  });
  afterAll(() => fs.rmSync(room, { recursive: true, force: true }));

  /** The index as it was, then harmed: whoever comes next is the first to meet the damage. */
  function harmed(harm: Harm): void {
    fs.rmSync(index, { recursive: true, force: true });
    fs.cpSync(pristine, index, { recursive: true });
    harm(index);
  }

  /** One reader and one writer are processes, if that is asked for; the others are the same program in this one. */
  async function expectAllThere(harm: Harm, wishes: Held["excludes"], isStarted: boolean): Promise<void> {
    const ask = (isProcess: boolean, ...args: string[]) =>
      isProcess ? repo.ask("agent:b", ...args) : repo.askHere("agent:b", ...args);
    harmed(harm);
    const seen = (await ask(isStarted, "lock", "status")).data.leases;
    expect(names(seen)).toEqual(names(leases));
    for (const wish of wishes) {
      harmed(harm);
      const refused = await ask(isStarted && wish === wishes[0], "lock", "acquire", ...wish);
      expectJsonRefused(refused, 1, "E_LOCK_CONFLICT");
    }
    expect(repo.logText()).toBe(log);
  }

  it.each(TO_ALL)("%s", async (_, harm) => {
    await expectAllThere(
      harm,
      HELD.map(({ excludes }) => excludes[0]!),
      true,
    );
  });

  it.each(TO_ONE)("%s", async (_, held, harm) => {
    await expectAllThere(harm, held.excludes, held === HELD[0]);
  });

  it("a lease's file holds another lease's content", async () => {
    const [one, other] = [HELD[0]!, HELD[1]!];
    const swap: Harm = (where) => fs.copyFileSync(leaseFile(where, one.key), leaseFile(where, other.key));
    await expectAllThere(swap, other.excludes, true);
  });
});

describe("S16: after the index was lost", () => {
  it.each(TO_ALL)("holders go on and tokens go on rising, when %s", async (_, harm) => {
    const repo = TestRepo.make();
    const { lease } = await repo.prepare("agent:a", "lock", "acquire", "a.ts");
    harm(path.join(repo.control, "index"));
    expect((await repo.ask("agent:a", "lock", "release", "a.ts")).lease.lease_id).toBe(lease.lease_id);
    expect((await repo.ask("agent:b", "lock", "acquire", "a.ts")).lease.fencing_token).toBe(2);
  });
});

function names(leases: readonly LeaseJson[]): string[] {
  return leases.map(({ key, lease_id, fencing_token }) => `${key} ${lease_id} ${fencing_token}`).sort();
}
