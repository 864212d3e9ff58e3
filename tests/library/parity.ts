import * as fs from "node:fs";
import * as path from "node:path";
import { expect, it } from "vitest";
import { CotenantError } from "../../src/errors/cotenant-error";
import { type CotenantRepository, openRepository } from "../../src/index";
import { writeIssue } from "../support/issue-files";
import { TestRepo } from "../support/repo";
import { scratch } from "../support/scratch";

type Operations = CotenantRepository["operations"];

/** One request, as a program makes it and as somebody types it. */
interface Row<Value = never> {
  readonly words: string;
  /** Said by the program beforehand, in both repositories, by whom it names first. */
  readonly before?: readonly string[];
  readonly agent?: string;
  readonly ask: (operations: Operations) => Promise<Value>;
  /** As the command prints it. Left out where it is refused, or where only what it does can be compared. */
  readonly json?: (value: Value) => Readonly<Record<string, unknown>>;
}

export const row = <Value>(one: Row<Value>): Row => one as unknown as Row;

export const ADA = "agent:ada";
export const BOB = "agent:bob";
export const EVA = "human:eva";
/** The issues that every repository here has. */
export const ONE = "01JD8Z00000000000000000NE1";
export const TWO = "01JD8Z00000000000000000TW0";
export const DONE = "01JD8Z0000000000000000D0NE";

/** What differs from run to run: each such word by the order in which it is met. */
function normal(value: unknown): unknown {
  const names = new Map<string, string>();
  const text = JSON.stringify(value, (field, inner) =>
    /^(?:hint|remaining_secs|waited_secs|generated_at|pid|git_pid|git_start_time|start_time|startTime|wallMs|monotonicMs|prev|hash|secret_hash|bytes|.*_clock)$/.test(
      field,
    )
      ? undefined
      : inner,
  ).replace(
    /\d{4}-\d\d-\d\dT[\d:.]+Z|wt:[0-9a-f-]+|\b(?!01JD8Z|01jd8z)(?:[0-9A-HJKMNP-TV-Z]{26}|[0-9a-hjkmnp-tv-z]{26})\b|\b[0-9a-f]{16}\b|\b[0-9a-f]{32,64}\b|\/[^" ]*\/repo-[ab]/g,
    (word) => {
      const kind = /^\d{4}-/.test(word) ? "time" : (/^(wt:|\/)/.exec(word)?.[1] ?? "id");
      if (kind === "time") return "<time>";
      if (!names.has(word)) names.set(word, `<${kind}${names.size}>`);
      return names.get(word)!;
    },
  );
  return JSON.parse(text);
}

/** What is logged, but for which process it was and when; the data plane; and the names of refs. */
function effects(repo: TestRepo): unknown {
  const logged = repo.log().map(({ event_type: type, actor, payload }) => ({
    type,
    by: actor.agent_id,
    payload: withoutHolder(payload),
  }));
  const data = path.join(repo.root, ".cotenant");
  const files = fs
    .readdirSync(data, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .sort()
    .map((file) => [path.relative(data, file), fs.readFileSync(file, "utf8")]);
  return normal({ logged, files, refs: repo.git("for-each-ref", "--format=%(refname)").split("\n") });
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
  writeIssue(repo.root, { id: TWO, priority: "low" });
  writeIssue(repo.root, { id: DONE, state: "done" });
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  return repo;
}

async function answered(ask: () => Promise<unknown>): Promise<unknown> {
  try {
    const data = await ask();
    return { ok: true, ...(data === null ? {} : { data }) };
  } catch (error) {
    if (!(error instanceof CotenantError)) throw error;
    return { ok: false, error: error.toJSON() };
  }
}

export function compare(rows: readonly Row[]): void {
  it.each(rows)(
    "is answered, refused and done alike: $words ($before)",
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
        env: process.env,
      });
      const library = await answered(async () => {
        const value = await ask(repository.operations);
        return json?.(value) ?? null;
      });
      await repository.close();
      const { warnings: _, ...document } = program.json;
      if (json === undefined && document.ok) delete document.data;
      // The command line may add which of its options help.
      const told = (answer: unknown) => (answer as { error?: { hint: string } }).error?.hint ?? "";
      expect(told(document)).toContain(told(library));
      expect(normal(library)).toEqual(normal(document));
      expect(effects(called)).toEqual(effects(typed));
    },
  );
}
