import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect } from "vitest";
import type { HarnessName } from "../../src/identity/harness";
import { ROOT } from "../house/source";
import { guardCounts, startDaemon } from "../support/daemon";
import { callsOf, type Hooked, HookHarness } from "../support/hook-harness";
import { oneIn } from "../support/one-in";
import { TestRepo } from "../support/repo";

const it = oneIn(8);

interface Recorded {
  readonly event: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** As harnesses of these names have sent them, and as the scripted ones do. */
const CORPORA: readonly (readonly [HarnessName, string])[] = [
  ["claude", "harness-events/claude"],
  ["claude", "harness-recordings/claude"],
  ["codex", "harness-events/codex"],
  ["codex", "harness-recordings/codex"],
  ["codex", "harness-recordings/codex-code-mode"],
  ["cursor", "harness-events/cursor"],
  ["cursor", "harness-recordings/cursor"],
  ["gemini", "harness-events/gemini"],
  ["gemini", "harness-recordings/gemini"],
  ["copilot", "harness-events/copilot"],
  ["copilot", "harness-recordings/copilot"],
  ["qwen", "harness-events/qwen"],
  ["qwen", "harness-recordings/qwen"],
];

function recordedIn(corpus: string): Recorded[] {
  const text = fs.readFileSync(path.join(ROOT, `testing/corpora/${corpus}.jsonl`), "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Recorded);
}

/** Some of what the events are about is somebody else's. */
async function made(harness: HarnessName, ...via: string[]): Promise<TestRepo> {
  const repo = TestRepo.make();
  for (const file of ["README.md", "old.txt", "x.txt", "y.txt"]) repo.write(file, "# Hi\n");
  await repo.prepare("human:me", "init");
  repo.write(".cotenant/config.toml", "[guard]\nretry_secs = 600\n");
  repo.git("add", "--all");
  repo.git("commit", "--quiet", "--message", "first");
  await repo.prepare("agent:other", "lock", "acquire", "README.md", "x.txt");
  await repo.prepare("human:me", "agent", "install", harness, ...via);
  return repo;
}

function filled({ payload }: Recorded, repo: TestRepo): string {
  const values: Readonly<Record<string, string>> = {
    root: repo.root,
    home: path.join(repo.root, "../home"),
    session: "5e551011-0000-4000-8000-000000000000",
  };
  return JSON.stringify(payload).replace(/<([\w-]+)>/g, (_, name: string) => values[name] ?? `${name}-x`);
}

/** Without what differs between any two runs. */
function neutral(text: string, repo: TestRepo): string {
  return text
    .replaceAll(repo.root, "<root>")
    .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replace(/\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b/g, "<ulid>")
    .replace(/wt:[0-9a-f]{8}/g, "<wt>")
    .replace(/\(in \d+ s\)|"lock_age_secs":\d+|lock_age_secs: \d+/g, "<age>");
}

/** What is in the log, in order: who did what to which keys. */
function effects(repo: TestRepo): string[] {
  return repo.log().map(({ event_type: type, actor, payload }) => {
    const { leases = [], ended = [], ...rest } = payload as unknown as Record<string, object[]>;
    const keys = [...leases, ...ended].map((one) => {
      const { key, cause, agent_id: agent, bind, note } = one as Record<string, unknown>;
      return [key, cause, agent, bind, note].join(" ");
    });
    const { contentions, path: about, files } = rest as Record<string, unknown>;
    const more = JSON.stringify([contentions ?? null, about ?? null, files ?? null]);
    const facts = more.replace(/"(?:pid|monotonic_ms|wall_ms)":\d+|"start_time":"\d+"/g, '"<moment>"');
    return neutral(`${type} ${actor.agent_id} ${actor.session_id} ${keys.join(", ")} ${facts}`, repo);
  });
}

async function play(harness: HarnessName, corpus: string, repo: TestRepo): Promise<Hooked[]> {
  const process = new HookHarness(repo);
  const answers: Hooked[] = [];
  for (const recorded of recordedIn(corpus)) {
    for (const { event, command } of callsOf(repo, harness)) {
      if (event !== recorded.event) continue;
      const { status, stdout, stderr } = await process.run(command, filled(recorded, repo), {
        env: { CLAUDE_CODE_ENTRYPOINT: "cli" },
      });
      answers.push({ status, stdout: neutral(stdout, repo), stderr: neutral(stderr, repo) });
    }
  }
  process.kill();
  return answers;
}

describe("what harnesses send", () => {
  it.each(CORPORA)(
    "is answered by the daemon as by the program, to the byte: %s, %s",
    async (harness, corpus) => {
      const [alone, served] = [await made(harness), await made(harness, "--via", "daemon")];
      await startDaemon(served);
      const expected = await play(harness, corpus, alone);
      const answers = await play(harness, corpus, served);
      expect(expected.length).toBeGreaterThan(5);
      expect(expected.some(({ stdout, status }) => stdout.includes("agent:other") || status === 2)).toBe(
        true,
      );
      expect(answers).toEqual(expected);
      expect(effects(served)).toEqual(effects(alone));
      // And nobody else has answered.
      expect(await guardCounts(served)).toMatchObject({ events: answers.length, declined: 0 });
    },
  );
});
