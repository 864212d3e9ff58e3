import { describe } from "vitest";
import { leaseJson, statusJson, statusJsonIn } from "../../src/cli/terminal/render";
import { changeJson, grantJson, ticketJson } from "../../src/features/locks/commands/output";
import { pauseData } from "../../src/kernel/pause";
import { ADA, BOB, compare, DONE, EVA, ONE, row } from "./parity";

describe("a request about leases, by the library and by the program", () => {
  compare([
    row({
      words: "lock acquire a.txt --dir src --ttl 300 --reason why --note more",
      ask: ({ lock }) =>
        lock.acquire({ names: ["a.txt"], dirs: ["src"], ttlSecs: 300, reason: "why", note: "more" }),
      json: grantJson,
    }),
    row({
      words: "lock acquire --resource port --ref refs/heads/main",
      ask: ({ lock }) => lock.acquire({ resources: ["port"], refs: ["refs/heads/main"] }),
      json: grantJson,
    }),
    row({
      words: "lock acquire --glob src/*.ts",
      ask: ({ lock }) => lock.acquire({ globs: ["src/*.ts"] }),
      json: (value) => ({ ...grantJson(value), covers: value.covers }),
    }),
    row({
      words: "lock acquire a.txt",
      before: [`${BOB} lock acquire a.txt`],
      ask: ({ lock }) => lock.acquire({ names: ["a.txt"] }),
    }),
    row({ words: "lock acquire", ask: ({ lock }) => lock.acquire({}) }),
    row({ words: "lock acquire src", ask: ({ lock }) => lock.acquire({ names: ["src"] }) }),
    row({
      words: "lock acquire a.txt --ttl 999999999",
      ask: ({ lock }) => lock.acquire({ names: ["a.txt"], ttlSecs: 999_999_999 }),
    }),
    row({
      words: "lock acquire a.txt --ttl 0",
      ask: ({ lock }) => lock.acquire({ names: ["a.txt"], ttlSecs: 0 }),
    }),
    row({
      words: "lock acquire a.txt --request-id x",
      ask: ({ lock }) => lock.acquire({ names: ["a.txt"], requestId: "x" }),
    }),
    row({
      words: "lock acquire a.txt --wait --timeout 99999999",
      ask: ({ lock }) => lock.acquire({ names: ["a.txt"], wait: { timeoutSecs: 99_999_999 } }),
    }),
    row({
      words: "lock steal a.txt --reason hangs",
      agent: EVA,
      before: [`${BOB} lock acquire a.txt`],
      ask: ({ lock }) => lock.steal({ names: ["a.txt"], reason: "hangs" }),
      json: grantJson,
    }),
    row({
      words: "lock steal a.txt --reason hangs",
      before: [`${BOB} lock acquire a.txt`],
      ask: ({ lock }) => lock.steal({ names: ["a.txt"], reason: "hangs" }),
    }),
    row({
      words: "lock renew a.txt --ttl 900",
      before: [`${ADA} lock acquire a.txt`],
      ask: ({ lock }) => lock.renew({ names: ["a.txt"], ttlSecs: 900 }),
      json: changeJson,
    }),
    row({
      words: "lock renew a.txt --override-max",
      before: [`${ADA} lock acquire a.txt`],
      ask: ({ lock }) => lock.renew({ names: ["a.txt"], overrideMax: true }),
    }),
    row({
      words: "lock release a.txt --dir src --reason over",
      before: [`${ADA} lock acquire a.txt --dir src`],
      ask: ({ lock }) => lock.release({ names: ["a.txt"], dirs: ["src"], reason: "over" }),
      json: changeJson,
    }),
    row({ words: "lock release a.txt", ask: ({ lock }) => lock.release({ names: ["a.txt"] }) }),
    row({
      words: "lock status --path src",
      before: [`${BOB} lock acquire src/a.ts`, `${ADA} lock acquire a.txt`],
      ask: ({ lock }) => lock.status({ path: "src" }),
      json: (found) => ({
        leases: found.leases.map(statusJson),
        waiters: found.waiters.map(ticketJson),
        hints: [],
      }),
    }),
    row({
      words: "lock gc",
      ask: ({ lock }) => lock.gc(),
      json: (change) => ({ leases: change.leases.map((lease) => leaseJson(lease)) }),
    }),
    row({
      words: "pause --reason upgrade",
      agent: EVA,
      ask: ({ pause }) => pause({ reason: "upgrade" }),
      json: ({ pause, changed }) => ({ ...pauseData(pause), changed }),
    }),
    row({ words: "pause", agent: EVA, ask: ({ pause }) => pause({}) }),
    row({ words: "pause --reason mine", ask: ({ pause }) => pause({ reason: "mine" }) }),
    row({
      words: "resume",
      agent: EVA,
      before: [`${EVA} pause --reason upgrade`],
      ask: ({ resume }) => resume(),
      json: (ended) => ({ resumed: ended !== null, pause: ended === null ? null : pauseData(ended) }),
    }),
    row({
      words: `claim acquire ${ONE}`,
      ask: ({ claim }) => claim.acquire({ issue: ONE }),
      json: (claimed) => ({ ...grantJson(claimed), left: claimed.abandoned }),
    }),
    row({ words: `claim acquire ${DONE}`, ask: ({ claim }) => claim.acquire({ issue: DONE }) }),
    row({
      words: `claim acquire ${DONE} --reopen`,
      ask: ({ claim }) => claim.acquire({ issue: DONE, reopen: true }),
      json: (claimed) => ({ ...grantJson(claimed), left: claimed.abandoned }),
    }),
    row({ words: "claim acquire nothing", ask: ({ claim }) => claim.acquire({ issue: "nothing" }) }),
    row({
      words: `claim acquire ${ONE} --force --reason mine`,
      before: [`${BOB} claim acquire ${ONE}`],
      ask: ({ claim }) => claim.acquire({ issue: ONE, force: true, reason: "mine" }),
    }),
    row({
      words: `claim renew ${ONE} --ttl 900`,
      before: [`${ADA} claim acquire ${ONE}`],
      ask: ({ claim }) => claim.renew({ claim: ONE, ttlSecs: 900 }),
      json: changeJson,
    }),
    row({
      words: `claim heartbeat ${ONE}`,
      before: [`${ADA} claim acquire ${ONE}`],
      ask: ({ claim }) => claim.heartbeat({ claim: ONE }),
      json: changeJson,
    }),
    row({
      words: `claim release ${ONE} --reason over`,
      before: [`${ADA} claim acquire ${ONE}`, `${ADA} issue update ${ONE} --state in_progress`],
      ask: ({ claim }) => claim.release({ claim: ONE, reason: "over" }),
      json: changeJson,
    }),
    row({
      words: `claim transfer ${ONE} --to-agent ${BOB} --reason review`,
      before: [`${ADA} claim acquire ${ONE}`],
      ask: ({ claim }) => claim.transfer({ claim: ONE, toAgent: BOB, reason: "review" }),
      json: changeJson,
    }),
    row({
      words: `claim transfer ${ONE} --to-agent ${BOB}`,
      before: [`${ADA} claim acquire ${ONE}`],
      ask: ({ claim }) => claim.transfer({ claim: ONE, toAgent: BOB, reason: undefined }),
    }),
    row({
      words: `claim force-evict ${ONE} --reason gone`,
      agent: EVA,
      before: [`${BOB} claim acquire ${ONE}`],
      ask: ({ claim }) => claim.forceEvict({ claim: ONE, reason: "gone" }),
      json: changeJson,
    }),
    row({
      words: `claim force-evict a.txt --reason gone`,
      agent: EVA,
      before: [`${BOB} lock acquire a.txt`],
      ask: ({ claim }) => claim.forceEvict({ claim: "a.txt", reason: "gone" }),
    }),
    row({ words: `claim approve ${ONE}`, agent: EVA, ask: ({ claim }) => claim.approve({ proposal: ONE }) }),
    row({
      words: "claim proposals",
      ask: ({ claim }) => claim.proposals(),
      json: (proposals) => ({ proposals }),
    }),
    row({
      words: "claim status --mine",
      before: [`${ADA} claim acquire ${ONE}`],
      ask: ({ claim }) => claim.status({ mine: true }),
      json: (found) => ({ leases: found.leases.map(statusJsonIn(found.view)) }),
    }),
  ]);
});
