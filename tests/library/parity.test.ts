import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { leaseJson, statusJson, statusJsonIn } from "../../src/cli/terminal/render";
import { CotenantError } from "../../src/errors/cotenant-error";
import { changeJson, grantJson, ticketJson } from "../../src/features/locks/commands/output";
import { type CotenantRepository, openRepository } from "../../src/index";
import { pauseData } from "../../src/kernel/pause";
import { writeIssue } from "../support/issue-files";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

type Operations = CotenantRepository["operations"];
type Json = Readonly<Record<string, unknown>>;

/** One request, as a program makes it and as somebody types it. */
interface Row<Value = never> {
  readonly words: string;
  /** Said by the program beforehand, in both repositories, by whom it names first. */
  readonly before?: readonly string[];
  readonly agent?: string;
  readonly ask: (operations: Operations) => Promise<Value>;
  /** As the command prints it. Left out where the request is refused. */
  readonly json?: (value: Value) => Json;
}

const row = <Value>(one: Row<Value>): Row => one as unknown as Row;

const ADA = "agent:ada";
const BOB = "agent:bob";
const EVA = "human:eva";
/** The issues that every repository here has. */
const ONE = "01JD8Z00000000000000000NE1";
const DONE = "01JD8Z0000000000000000D0NE";
const leases = (found: { readonly leases: readonly unknown[] }) => found.leases;

const ROWS: readonly Row[] = [
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
    ask: ({ claim }) => claim.acquire({ issue: DONE, isReopening: true }),
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
];

/** What differs from run to run: each such word by the order in which it is met. */
function normal(value: unknown): unknown {
  const names = new Map<string, string>();
  const text = JSON.stringify(value, (field, inner) =>
    /^(?:hint|remaining_secs|waited_secs|generated_at|pid|start_time|prev|hash|secret_hash|bytes|.*_clock)$/.test(
      field,
    )
      ? undefined
      : inner,
  ).replace(
    /\d{4}-\d\d-\d\dT[\d:.]+Z|wt:[0-9a-f-]+|\b(?!01JD8Z)[0-9A-HJKMNP-TV-Z]{26}\b|\b[0-9a-f]{40,64}\b|\/[^" ]*\/repo-[ab]/g,
    (word) => {
      const kind = /^\d{4}-/.test(word) ? "time" : (/^(wt:|\/)/.exec(word)?.[1] ?? "id");
      if (kind === "time") return "<time>";
      if (!names.has(word)) names.set(word, `<${kind}${names.size}>`);
      return names.get(word)!;
    },
  );
  return JSON.parse(text);
}

/** What is logged, but for who asked, which process it was, and when. */
function effects(repo: TestRepo): unknown {
  return normal(
    repo.log().map(({ event_type: type, actor, payload }) => ({
      type,
      by: actor.agent_id,
      payload: withoutHolder(payload),
    })),
  );
}

function withoutHolder(payload: unknown): unknown {
  return JSON.parse(
    JSON.stringify(payload, (field, value) => (/^holder|^host|_ms$|boot/.test(field) ? undefined : value)),
  );
}

function made(): TestRepo {
  const repo = TestRepo.make(path.join(scratch(), "repo-a"));
  for (const file of ["a.txt", "src/a.ts", "src/b.ts"]) repo.write(file);
  writeIssue(repo.root, { id: ONE });
  writeIssue(repo.root, { id: DONE, state: "done" });
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return repo;
}

async function answered(ask: () => Promise<unknown>): Promise<unknown> {
  try {
    return { ok: true, data: await ask() };
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    return { ok: false, error: error.toJSON() };
  }
}

describe("the library and the program", () => {
  it.each(ROWS)(
    "answer, refuse and do the same: $words ($before)",
    async ({ words, before = [], agent = ADA, ask, json }) => {
      const typed = made();
      const called = typed.copy(path.join(scratch(), "repo-b"));
      for (const repo of [typed, called])
        for (const line of before) {
          const [who = "", ...said] = line.split(" ");
          expect((await repo.askHere(who, ...said)).status, line).toBe(0);
        }
      const program = await typed.askHere(agent, ...words.split(" "));
      const repository = await openRepository({
        cwd: called.root,
        agentId: agent,
        env: { HOME: process.env["HOME"] },
      });
      const library = await answered(async () => {
        const value = await ask(repository.operations);
        return json === undefined ? leases(value as never) : json(value);
      });
      await repository.close();
      const { warnings: _, ...document } = program.json;
      // The command line may add which of its options help.
      const told = (answer: unknown) => (answer as { error?: { hint: string } }).error?.hint ?? "";
      expect(told(document)).toContain(told(library));
      expect(normal(library)).toEqual(normal(document));
      expect(effects(called)).toEqual(effects(typed));
    },
  );
});
