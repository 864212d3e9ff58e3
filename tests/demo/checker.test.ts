import { describe, expect, it } from "vitest";
import { Books } from "../../src/demo/books";
import { LogCheck } from "../../testing/checker/log-check";
import { Verdict } from "../../testing/checker/verdict";
import { WitnessCheck } from "../../testing/checker/witness-check";
import { FILE, GROUND, pidOf, Story } from "./story";

function check(story: Story, witness: readonly string[] = [], isDead?: (pid: number) => boolean): Verdict {
  const verdict = new Verdict();
  const log = new LogCheck(verdict, isDead);
  for (const line of story.lines) log.take(line);
  const thing = new WitnessCheck(FILE, GROUND, log, verdict);
  for (const line of witness) thing.take(line);
  return verdict;
}

const says = (verb: string, token: number, who: string, sequence: number, atMs = token * 1000) =>
  `${verb} ${token} ${pidOf(who)} ${sequence} ${atMs}`;

/** ann has it and gives it back; ben has it and loses it to cleo, who finds it expired. */
function everydayStory() {
  const story = new Story();
  const ann = story.lease(FILE, 1, "ann");
  const ben = story.lease(FILE, 2, "ben");
  const from = [{ lease_id: ben["lease_id"], agent_id: ben["agent_id"], why: "expired" }];
  const cleo = story.lease("dir:src", 20, "cleo", { stole_from: from });
  story
    .claim("claim.acquired", [ann])
    .claim("claim.released", [], [story.ended(ann, "released")])
    .claim("claim.acquired", [ben])
    .claim("claim.renewed", [ben])
    .claim("claim.acquired", [cleo], [story.ended(ben, "expired")]);
  const witness = [
    says("enter", 1, "ann", 2),
    says("write", 1, "ann", 2),
    says("leave", 1, "ann", 2),
    says("enter", 2, "ben", 4),
    says("enter", 20, "cleo", 6),
    says("leave", 20, "cleo", 6),
  ];
  return { story, witness, ann, ben, cleo };
}

describe("the checker", () => {
  it("finds nothing wrong in an everyday story", () => {
    const { story, witness } = everydayStory();
    const verdict = check(story, witness);
    expect(verdict.violations).toEqual([]);
    expect(verdict.checked).toBeGreaterThan(60);
  });

  it("reads what the store writes to a new segment", () => {
    const { story, cleo } = everydayStory();
    const view = { segment: 2, part: 1, parts: 1, next_token: 21, endings: [], requests: [] };
    story.add("log.checkpoint", "agent:cleo", { ...view, leases: [cleo] });
    expect(check(story).violations).toEqual([]);
    story.add("log.checkpoint", "agent:cleo", { ...view, leases: [], next_token: 3 });
    expect(rulesBroken(check(story))).toEqual(["a checkpoint says what stands", "tokens never restart"]);
  });
});

describe("planted in the log", () => {
  it.each<[string, (told: ReturnType<typeof everydayStory>) => void]>([
    [
      "no two leases of different holders meet",
      ({ story }) => story.claim("claim.acquired", [story.lease("file:src/ui/menu.tsx", 21, "ann")]),
    ],
    [
      "fencing tokens rise",
      ({ story }) => story.claim("claim.acquired", [story.lease("file:docs/guide.md", 3, "ann")]),
    ],
    [
      "every steal says whom from",
      ({ story, cleo }) => {
        const taken = story.lease(FILE, 31, "ann");
        story.claim("claim.acquired", [taken], [story.ended(cleo, "expired")]);
      },
    ],
    [
      "every steal ends what it stole",
      ({ story, ann }) => {
        const from = [{ lease_id: ann["lease_id"], agent_id: ann["agent_id"], why: "dead" }];
        story.claim("claim.acquired", [story.lease("file:docs/guide.md", 21, "ben", { stole_from: from })]);
      },
    ],
    [
      "nobody loses a lease before its time",
      ({ story, cleo }) => {
        const from = [{ lease_id: cleo["lease_id"], agent_id: cleo["agent_id"], why: "expired" }];
        const early = story.lease(FILE, 21, "ann", { stole_from: from });
        story.claim("claim.acquired", [early], [story.ended(cleo, "expired")]);
      },
    ],
    [
      "only the dead are taken for dead",
      ({ story, cleo }) => {
        const from = [{ lease_id: cleo["lease_id"], agent_id: cleo["agent_id"], why: "dead" }];
        const taken = story.lease(FILE, 21, "ann", { stole_from: from });
        story.claim("claim.acquired", [taken], [story.ended(cleo, "dead")]);
      },
    ],
    [
      "only people end live leases",
      ({ story, cleo }) => story.claim("claim.evicted", [], [story.ended(cleo, "forced")], "agent:ann"),
    ],
    ["a lease that ended stays ended", ({ story, ann }) => story.claim("claim.renewed", [ann])],
    [
      "a lease keeps its token",
      ({ story, cleo }) => story.claim("claim.renewed", [{ ...cleo, fencing_token: 21 }]),
    ],
    [
      "only what stands can end",
      ({ story, ann }) => story.claim("claim.released", [], [story.ended(ann, "released")]),
    ],
    [
      "only grants and transfers make leases",
      ({ story }) => story.claim("claim.renewed", [story.lease("file:docs/guide.md", 21, "ann")]),
    ],
    [
      "the chain of sums is whole",
      ({ story }) =>
        story.add("claim.released", "agent:ann", { leases: [], ended: [] }, { prev: "0".repeat(32) }),
    ],
    [
      "sequence numbers have no gaps",
      ({ story }) =>
        story.add("claim.released", "agent:ann", { leases: [], ended: [] }, { sequence: story.sequence + 2 }),
    ],
    [
      "no secret is in the log",
      ({ story }) => story.add("claim.released", "agent:ann", { leases: [], ended: [], secret: "x" }),
    ],
  ])("is caught: %s", (rule, plant) => {
    const told = everydayStory();
    plant(told);
    expect(rulesBroken(check(told.story))).toEqual([rule]);
  });

  it("is caught: a line that was altered, and the hole it leaves in the chain", () => {
    const { story } = everydayStory();
    story.lines[2] = story.lines[2]!.replace("claim.released", "claim.acquired");
    expect(rulesBroken(check(story))).toContain("every line has the sum it names");
    expect(rulesBroken(check(story))).toContain("the chain of sums is whole");
  });

  it("is caught: a live process that was taken for dead", () => {
    const story = new Story();
    const ann = story.lease(FILE, 1, "ann", { bind: "process" });
    const from = [{ lease_id: ann["lease_id"], agent_id: ann["agent_id"], why: "dead" }];
    const ben = story.lease(FILE, 2, "ben", { stole_from: from });
    story.claim("claim.acquired", [ann]).claim("claim.acquired", [ben], [story.ended(ann, "dead")]);
    expect(check(story, [], (pid) => pid === pidOf("ann")).violations).toEqual([]);
    expect(rulesBroken(check(story, [], () => false))).toEqual(["only the dead are taken for dead"]);
  });
});

describe("planted in a witness", () => {
  const everyday = everydayStory();

  it.each<[string, string, string[]]>([
    [
      "two holders at once",
      "never two holders at once",
      [says("enter", 2, "ben", 4), says("enter", 20, "cleo", 5)],
    ],
    [
      "a token that fell",
      "tokens rise on every thing",
      [says("enter", 20, "cleo", 6), says("leave", 20, "cleo", 6), says("enter", 2, "ben", 5)],
    ],
    [
      "a write after the successor came",
      "only who is in writes and leaves",
      [says("enter", 2, "ben", 4), says("enter", 20, "cleo", 6), says("write", 2, "ben", 5)],
    ],
    [
      "a write after the lease had ended",
      "no write with a stale token",
      [says("enter", 2, "ben", 4), says("write", 2, "ben", 6)],
    ],
    ["a write after the expiry", "no write after the expiry", [says("enter", 2, "ben", 4, 12_000)]],
    [
      "a lease that was never granted",
      "whoever writes was granted a lease on it",
      [says("enter", 9, "ben", 4)],
    ],
    ["somebody else's lease", "a lease is used by its own process", [says("enter", 2, "ann", 4)]],
    ["a line that nobody writes", "witness lines are whole", ["enter 2"]],
  ])("is caught: %s", (_what, rule, witness) => {
    expect(rulesBroken(check(everyday.story, witness))).toContain(rule);
  });
});

describe("the books", () => {
  function compare(enter: (books: Books, told: ReturnType<typeof everydayStory>) => void): string[] {
    const told = everydayStory();
    const verdict = new Verdict();
    const log = new LogCheck(verdict);
    for (const line of told.story.lines) log.take(line);
    const books = new Books();
    enter(books, told);
    books.compare(log, verdict);
    return rulesBroken(verdict);
  }

  const granted = (lease: Readonly<Record<string, unknown>>) => ({
    leaseId: String(lease["lease_id"]),
    key: String(lease["key"]),
    token: Number(lease["fencing_token"]),
  });

  function everything(books: Books, { ann, ben, cleo }: ReturnType<typeof everydayStory>): void {
    for (const lease of [ann, ben, cleo]) {
      const ended = lease === cleo ? [{ leaseId: granted(ben).leaseId, how: "expired" }] : [];
      books.enter({ say: "granted", leases: [granted(lease)], ended, queued: false, adopted: false });
    }
    books.enter({ say: "renewed", leaseIds: [granted(ben).leaseId] });
    books.enter({ say: "released", leaseIds: [granted(ann).leaseId] });
  }

  it("agree with the log when everybody said what they did", () => {
    expect(compare(everything)).toEqual([]);
  });

  it("show a grant that was acknowledged and is not in the log", () => {
    const lost = { leaseId: "LOST", key: FILE, token: 30 };
    const broken = compare((books, told) => {
      everything(books, told);
      books.enter({ say: "granted", leases: [lost], ended: [], queued: false, adopted: false });
    });
    expect(broken).toEqual(["what was acknowledged is in the log", "agents and the log count alike"]);
  });

  it("show what the log has and nobody said, unless its process died at it", () => {
    const allButCleo = (books: Books, told: ReturnType<typeof everydayStory>) => {
      const { ann, ben } = told;
      for (const lease of [ann, ben])
        books.enter({ say: "granted", leases: [granted(lease)], ended: [], queued: false, adopted: false });
      books.enter({ say: "released", leaseIds: [granted(ann).leaseId] });
    };
    expect(compare(allButCleo)).toEqual([
      "every grant in the log was heard of",
      "every ending in the log was heard of",
      "agents and the log count alike",
    ]);
    const diedAtIt = compare((books, told) => {
      allButCleo(books, told);
      books.unheard(pidOf("cleo"));
    });
    expect(diedAtIt).toEqual([]);
  });
});

function rulesBroken(verdict: Verdict): string[] {
  const rules = verdict.violations.map((violation) => violation.split(":")[0]!);
  return [...verdict.checks.keys()].filter((rule) => rules.includes(rule));
}
