import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { parseCommandLine } from "../../../src/cli/grammar/parse";
import { CotenantError } from "../../../src/errors/cotenant-error";
import { canonicalPath } from "../../../src/identity/paths";
import { findRepository, type Repository } from "../../../src/identity/repository";
import { parseAgentId, parseSessionId, parseUlid, printable } from "../../../src/kernel/ids";
import {
  isPathKey,
  kindOf,
  nameOf,
  parseKey,
  parseRepoPath,
  pathOf,
  resourceKey,
} from "../../../src/kernel/keys";
import { isRefusal, type Refusal, refuse } from "../../../src/kernel/refusal";
import type { Platform } from "../../../src/platform/platform";
import type { Prng } from "../../../testing/simulator";
import { CliRoom, emptyRepository } from "./cli-room";
import { corpus } from "./corpus";
import { expectThat, outcomeOf } from "./finding";
import { Mutator } from "./mutator";
import type { Count } from "./target";

type Parser = (text: string) => unknown;

const PARSERS: Readonly<Record<string, Parser>> = {
  "agent-ids": parseAgentId,
  "session-ids": parseSessionId,
  ulids: parseUlid,
  "resource-names": resourceKey,
  "whole-numbers": wholeNumber,
  "git-names": (name) => parseRepoPath(`a/${name}`),
};

/** Half of a surrogate pair. */
const LONE = /\p{Cs}/u;

const KEY_SEEDS = ["keys-valid.txt", "keys-escaping.txt", "keys-malformed.txt"];
/** Git is asked about this many names at once. */
const GIT_BATCH = 400;

/** Keys, paths, ids, names and numbers: everything that is one word. */
export class Names {
  readonly #seeds: readonly { readonly target: string; readonly text: string }[];
  readonly #scratch: string;
  #place: { readonly platform: Platform; readonly repository: Repository } | null = null;
  #forGit: string[] = [];

  constructor(scratch: string) {
    this.#scratch = scratch;
    const targets = [...Object.keys(PARSERS), "paths"];
    this.#seeds = [
      ...targets.flatMap((target) =>
        ["valid", "invalid"].flatMap((name) =>
          corpus(`${target}/${name}.txt`).map(({ text }) => ({ target, text })),
        ),
      ),
      ...KEY_SEEDS.flatMap((name) => corpus(name).map(({ text }) => ({ target: "keys", text }))),
    ];
  }

  /** Every line of the corpora, as it stands. */
  async checkCorpora(count: Count): Promise<void> {
    for (const target of [...Object.keys(PARSERS), "paths"]) {
      for (const [name, isValid] of [
        ["valid", true],
        ["invalid", false],
      ] as const) {
        for (const { text, line } of corpus(`${target}/${name}.txt`)) {
          const answer = await this.#parse(target, text);
          const where = `testing/corpora/${target}/${name}.txt:${line}`;
          expectThat(isRefusal(answer) !== isValid, `${where} is ${isValid ? "refused" : "accepted"}`);
          count(`corpus: ${target}`);
        }
      }
    }
  }

  async try(prng: Prng, count: Count): Promise<void> {
    const { target, text: seed } = prng.pick(this.#seeds);
    const text = new Mutator(prng).text(seed);
    const startedMs = performance.now();
    const answer = await this.#parse(target, text);
    const tookMs = performance.now() - startedMs;
    expectThat(tookMs < 2_000, `${target}: ${tookMs} ms for ${JSON.stringify(text.slice(0, 100))}`);
    if (isRefusal(answer)) checkRefusal(answer, target, text);
    else await this.#checkAccepted(target, text, String(answer));
    if (target === "git-names" || target === "keys")
      this.#forGit.push(target === "keys" ? nameIn(text) : text);
    if (this.#forGit.length >= GIT_BATCH) this.#compareWithGit(count);
    count(`${target} ${isRefusal(answer) ? "refused" : "accepted"}`);
  }

  async #parse(target: string, text: string): Promise<unknown> {
    const parser = target === "keys" ? parseKey : PARSERS[target];
    if (parser !== undefined) return (await settled(target, text, () => parser(text))) as unknown;
    const { platform, repository } = await this.#repository();
    return settled(target, text, async () => {
      const found = await canonicalPath(platform, repository, "/repo", text);
      return isRefusal(found) ? found : found.path;
    });
  }

  async #repository() {
    if (this.#place === null) {
      const git = emptyRepository(this.#scratch);
      const { world } = new CliRoom(1, git);
      const { platform } = world.attach("names");
      this.#place = { platform, repository: await findRepository(platform, "/repo", {}, git) };
    }
    return this.#place;
  }

  async #checkAccepted(target: string, text: string, answer: string): Promise<void> {
    const shown = `${target}: ${JSON.stringify(text.slice(0, 200))} became ${JSON.stringify(answer.slice(0, 200))}`;
    expectThat(!/[\x00-\x1f\x7f]/.test(answer), `${shown}, with control characters`);
    expectThat(!LONE.test(answer), `${shown}, which is no Unicode`);
    if (target === "keys") checkKey(answer, shown);
    if (target === "paths" || target === "git-names") checkPath(answer, shown);
    if (target === "paths") await this.#checkSpellings(text, answer);
  }

  /** However a path is typed, it has one key. */
  async #checkSpellings(text: string, answer: string): Promise<void> {
    const spellings = [
      text.normalize("NFD"),
      text.normalize("NFC"),
      ...(text.startsWith("/") ? [] : [`./${text}`, `src/../${text}`]),
    ];
    for (const spelling of spellings) {
      const again = await this.#parse("paths", spelling);
      // One that has become too long may be refused.
      const isSame = again === answer || (isRefusal(again) && again.code === "E_LIMIT");
      expectThat(
        isSame,
        `${JSON.stringify(spelling.slice(0, 200))} and ${JSON.stringify(text.slice(0, 200))} are two keys`,
      );
    }
  }

  /** Whatever the real Git refuses to have in its index, on any system, must be no key of ours. */
  #compareWithGit(count: Count): void {
    // Slashes at the end are no part of a name for us.
    const names = this.#forGit
      .map((name) => name.replace(/(?<!\/)\/+$/, ""))
      .filter((name) => name !== "" && !name.includes("\0") && !LONE.test(name));
    this.#forGit = [];
    const cwd = join(this.#scratch, "empty");
    const blob = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    const git = (args: string[], input = "") =>
      execFileSync("git", ["-c", "core.protectNTFS=true", "-c", "core.protectHFS=true", ...args], {
        cwd,
        input,
        stdio: ["pipe", "pipe", "ignore"],
        maxBuffer: 1 << 28,
      }).toString("utf8");
    git(["read-tree", "--empty"]);
    // Each in a directory of its own, so that they are not in each other's way.
    const paths = names.map((name, i) => `n${i}/${name}`);
    git(["update-index", "-z", "--index-info"], paths.map((path) => `100644 ${blob}\t${path}\0`).join(""));
    const accepted = new Set(git(["ls-files", "-z"]).split("\0"));
    for (const path of paths) {
      const key = parseKey(`file:${path}`);
      if (accepted.has(path)) continue;
      expectThat(isRefusal(key), `Git refuses ${JSON.stringify(path.slice(0, 200))}, and we take it`);
      count("refused as Git refuses it");
    }
    count("compared with Git");
  }
}

/** A refusal is a value; an error with a code of ours is as good. Anything else is a finding. */
async function settled<T>(target: string, text: string, call: () => T): Promise<Awaited<T> | Refusal> {
  const outcome = await outcomeOf(`${target} ${JSON.stringify(text.slice(0, 200))}`, call);
  return outcome.ok
    ? (outcome.value as Awaited<T>)
    : refuse(outcome.code as Refusal["code"], "it was thrown");
}

function checkRefusal(refusal: Refusal, target: string, text: string): void {
  const { code, message } = refusal;
  const expected = ["E_USAGE", "E_PATH_ESCAPE", "E_LIMIT"];
  expectThat(expected.includes(code), `${target}: ${code} for ${JSON.stringify(text.slice(0, 200))}`);
  expectThat(!/[\p{Cc}\p{Cf}\u2028\u2029]/u.test(message), `${target}: a message that a terminal would obey`);
  expectThat(message.length < 2_000, `${target}: a message of ${message.length} characters`);
}

function checkKey(answer: string, shown: string): void {
  const key = parseKey(answer);
  expectThat(key === answer, `${shown}, which is not canonical`);
  if (isRefusal(key)) return;
  expectThat(`${kindOf(key)}:${nameOf(key)}` === answer, `${shown}, whose parts are others`);
  if (isPathKey(key)) checkPath(pathOf(key), shown);
}

function checkPath(path: string, shown: string): void {
  expectThat(parseRepoPath(path) === path, `${shown}, which is not canonical`);
  if (path === ".") return;
  expectThat(!path.startsWith("/") && path.normalize("NFC") === path, `${shown}, which is not canonical`);
  for (const name of path.split("/")) {
    expectThat(!["", ".", ".."].includes(name), `${shown}, which leads elsewhere`);
    expectThat(!looksLikeGit(name), `${shown}, which is Git's own`);
  }
}

/** As git's path.c and utf8.c have it, written down once more. */
function looksLikeGit(name: string): boolean {
  const visible = [...name]
    .filter((c) => !isIgnoredByHfs(c.codePointAt(0)!))
    .join("")
    .toLowerCase();
  if (visible === ".git") return true;
  return name.split("\\").some((part) => {
    const start = part.toLowerCase().startsWith(".git") ? 4 : part.toLowerCase().startsWith("git~1") ? 5 : 0;
    if (start === 0) return false;
    const rest = part.slice(start).split(":")[0]!;
    return [...rest].every((c) => c === "." || c === " ");
  });
}

function isIgnoredByHfs(code: number): boolean {
  const ranges = [
    [0x200c, 0x200f],
    [0x202a, 0x202e],
    [0x206a, 0x206f],
    [0xfeff, 0xfeff],
  ] as const;
  return ranges.some(([low, high]) => code >= low && code <= high);
}

function nameIn(key: string): string {
  return key.slice(key.indexOf(":") + 1);
}

function wholeNumber(text: string): unknown {
  try {
    return parseCommandLine(
      "lock acquire",
      [`--ttl=${text}`],
      { ttl: { value: "<secs>", meaning: "" } },
      { min: 0, max: 0 },
    ).whole("ttl");
  } catch (error) {
    if (error instanceof CotenantError)
      return refuse(error.code as Refusal["code"], printable(error.message, 1_000));
    throw error;
  }
}
