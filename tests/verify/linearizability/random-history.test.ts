import { describe, expect, it } from "vitest";
import { Prng } from "../../../testing/simulator/prng";
import { check } from "./checker";
import type { History, Operation } from "./history";
import { randomHistory } from "./random-history";

const FIRST_SEED = Number(process.env["TEST_SEED"] ?? Math.floor(Math.random() * 1e9));
const SEEDS = [...Array(60).keys()].map((at) => FIRST_SEED + at);

/** The history with one answer changed; null when it has none of the kind. */
function changed(
  history: History,
  chance: Prng,
  change: (operation: Operation) => Operation | null,
): History | null {
  const changes = history.operations.flatMap((operation, at) => {
    const other = change(operation);
    return other === null ? [] : [{ at, other }];
  });
  if (changes.length === 0) return null;
  const { at, other } = chance.pick(changes);
  return { ...history, operations: history.operations.with(at, other) };
}

/** A grant's token becomes one that was given long before. */
function withOldToken(operation: Operation): Operation | null {
  const { answer, ask } = operation;
  if (answer.is !== "done" || ask.do !== "acquire") return null;
  const [first, ...rest] = answer.leases;
  if (first === undefined || first.token < 20 || !ask.ids!.includes(first.id)) return null;
  return { ...operation, answer: { ...answer, leases: [{ ...first, token: first.token - 15 }, ...rest] } };
}

/** A lease that a read shows is somebody else's. */
function withOtherHolder(operation: Operation): Operation | null {
  const { answer, ask } = operation;
  if (answer.is !== "done" || ask.do !== "read" || answer.leases.length === 0) return null;
  const [first, ...rest] = answer.leases;
  return { ...operation, answer: { ...answer, leases: [{ ...first!, agent: "agent:nobody" }, ...rest] } };
}

/** A release that was answered is taken back: the lease goes on. */
function withRefusedRelease(operation: Operation): Operation | null {
  const { answer, ask } = operation;
  if (answer.is !== "done" || ask.do !== "release") return null;
  return { ...operation, answer: { is: "refused", code: "E_NOT_FOUND", holders: [] } };
}

/** A refusal names a lease of another name. */
function withStrangeHolder(operation: Operation): Operation | null {
  const { answer } = operation;
  if (answer.is !== "refused" || answer.holders.length === 0) return null;
  return { ...operation, answer: { ...answer, holders: ["L0.0"] } };
}

describe(`random histories (TEST_SEED=${FIRST_SEED})`, () => {
  it("that happened are always accepted", () => {
    for (const seed of SEEDS) expect(check(randomHistory(seed, 300)).broken, `seed ${seed}`).toEqual([]);
  });

  it("of many thousand operations need no more room than short ones", () => {
    const { broken, widest } = check(randomHistory(FIRST_SEED, 20_000));
    expect(broken).toEqual([]);
    expect(widest).toBeLessThan(5_000);
  });

  it.each([
    ["an old token", withOldToken, 1],
    ["another holder", withOtherHolder, 1],
    ["a release that is taken back", withRefusedRelease, 0.9],
    ["a refusal for a lease that never was", withStrangeHolder, 1],
  ])("with %s are rejected", (_, change, least) => {
    const verdicts = SEEDS.flatMap((seed) => {
      const history = changed(randomHistory(seed, 300), new Prng(seed, "change"), change);
      return history === null ? [] : [check(history).broken.length > 0];
    });
    expect(verdicts.length).toBeGreaterThan(SEEDS.length / 2);
    const caught = verdicts.filter((isCaught) => isCaught).length / verdicts.length;
    expect(caught).toBeGreaterThanOrEqual(least);
  });
});
