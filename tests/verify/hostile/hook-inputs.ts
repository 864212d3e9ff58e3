import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Answer } from "../../../src/features/guard/answers";
import { HARNESSES } from "../../../src/features/guard/harness";
import { runHook } from "../../../src/features/guard/run";
import { readCommand } from "../../../src/features/guard/shell/walk";
import type { World } from "../../../src/features/guard/world";
import { HARNESS_NAMES, type HarnessName } from "../../../src/identity/harness";
import type { Prng } from "../../../testing/simulator";
import { ROOT } from "../../house/source";
import { CliRoom, emptyRepository } from "./cli-room";
import { expectThat, Finding } from "./finding";
import { Mutator } from "./mutator";
import type { Count } from "./target";

const COMMANDS: readonly string[] = [
  "cd src && echo x > a.ts && sed -i 's/a/b/' *.ts | tee -a out 2>&1",
  "cat <<'EOF' > a\nhello $(date > b)\nEOF\n(git stash; rm -rf \"$X\"/{a,b}) &",
  'for f in a b; do bash -c "echo $f > c"; done; git -C x checkout -- y',
  "if [ -f a ]; then mv a b; elif x; then cp -t d e; else dd of=f; fi; case $x in a) rm b;; esac",
  "apply_patch <<'P'\n*** Begin Patch\n*** Update File: a\n*** End Patch\nP",
];
/** A new repository after so many: leases and facts of earlier ones are part of the trial. */
const INPUTS_PER_ROOM = 40;

/** What harnesses write to a hook's standard input, spoilt; and command lines, which agents make up. */
export class HookInputs {
  readonly #scratch: string;
  readonly #seeds: readonly { readonly harness: HarnessName; readonly payload: unknown }[];
  #room: CliRoom | null = null;
  #used = 0;
  #harnessPid = 0;

  constructor(scratch: string) {
    this.#scratch = scratch;
    this.#seeds = HARNESS_NAMES.flatMap((harness) =>
      readFileSync(join(ROOT, `testing/corpora/harness-events/${harness}.jsonl`), "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => {
          const text = line.replaceAll("<root>", "/repo");
          return { harness, payload: (JSON.parse(text) as { payload: unknown }).payload };
        }),
    );
  }

  async try(prng: Prng, count: Count): Promise<void> {
    if (prng.chance(0.4)) return this.#tryCommand(prng, count);
    const { harness, payload } = prng.pick(this.#seeds);
    const mutator = new Mutator(prng);
    const spoilt = prng.chance(0.6) ? mutator.json(payload) : mutator.text(JSON.stringify(payload));
    // Two sessions, so that they meet.
    const text = spoilt.replaceAll("<session>", prng.pick(["5e551011", "5e551012"]));
    const { name: event } = prng.pick(HARNESSES[harness].events);
    const answer = await this.#ask(harness, event, text, prng);
    checkAnswer(harness, text, answer);
    count(`hook input ${answer.stdout === "" && answer.status === 0 ? "passed over" : "answered"}`);
  }

  #tryCommand(prng: Prng, count: Count): void {
    const command = new Mutator(prng).text(prng.pick(COMMANDS));
    const startedMs = performance.now();
    const { writes } = readCommand(command, { cwd: "/repo", home: "/user" });
    const tookMs = performance.now() - startedMs;
    const shown = JSON.stringify(command.slice(0, 300));
    expectThat(tookMs < 2_000, `${tookMs} ms to read ${shown}`);
    expectThat(writes.length < 100_000, `${writes.length} writes in ${shown}`);
    count("shell command read");
  }

  async #ask(harness: HarnessName, event: string, text: string, prng: Prng): Promise<Answer> {
    if (this.#room === null || this.#used++ % INPUTS_PER_ROOM === 0) {
      this.#room = new CliRoom(prng.below(2 ** 31), emptyRepository(this.#scratch));
      this.#room.world.disk.makePath("/repo/.git/cotenant");
      // It lives on: what its sessions hold stays held.
      this.#harnessPid = this.#room.world.attach("harness").pid;
    }
    const { platform } = this.#room.world.attach("hook");
    const world: World = {
      platform,
      git: emptyRepository(this.#scratch),
      env: prng.chance(0.2) ? { COTENANT_GUARD_ON_FAILURE: "closed" } : {},
      home: "/user",
      cwd: "/repo",
      parentPid: 1,
      harnessPid: this.#harnessPid,
    };
    // Too little patience to wait for anybody.
    const call = { harness, event, patienceMs: 1_000 };
    try {
      return await runHook(world, call, { text });
    } catch (error) {
      throw new Finding(
        `${harness} ${event}: ${JSON.stringify(text.slice(0, 500))}: ${error instanceof Error ? error.stack : error}`,
      );
    }
  }
}

/** Nothing, or one document in the harness's form; and nothing that a terminal would obey. */
function checkAnswer(harness: HarnessName, text: string, { stdout, stderr, status }: Answer): void {
  const shown = `${harness}: ${JSON.stringify(text.slice(0, 300))} was answered ${JSON.stringify({ stdout, stderr, status })}`;
  expectThat(status === 0 || status === 2, shown);
  expectThat(status === 2 ? stderr !== "" : stderr === "", shown);
  expectThat(!/[\x00-\x09\x0b-\x1f\x7f]/.test(stdout + stderr), `${shown}, with control characters`);
  if (stdout === "" || HARNESSES[harness].answers === "exit-2") return;
  try {
    JSON.parse(stdout);
  } catch {
    throw new Finding(`${shown}, which is no JSON`);
  }
}
