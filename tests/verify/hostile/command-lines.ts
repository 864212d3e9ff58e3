import { Readable } from "node:stream";
import { COMMANDS } from "../../../src/cli/commands";
import { COMMON_FLAGS } from "../../../src/cli/grammar/command";
import { findCommand } from "../../../src/cli/lookup";
import type { LastingGit } from "../../../src/platform/git";
import type { Prng } from "../../../testing/simulator";
import { CONTROL } from "../../store/stage";
import { CliRoom, emptyRepository } from "./cli-room";
import { corpus } from "./corpus";
import { expectThat, Finding } from "./finding";
import { Mutator } from "./mutator";
import type { Count } from "./target";

const LINES_PER_ROOM = 40;
/** What is wrong with the words alone must be found before anything is written. */
const WRITES_NOTHING = ["E_USAGE", "E_PATH_ESCAPE"];

interface Grammar {
  readonly name: string;
  readonly flags: readonly { readonly name: string; readonly takesValue: boolean }[];
}

/** Arguments for every command: half right, as people and scripts get them wrong, and worse. */
export class CommandLines {
  readonly #git: LastingGit;
  readonly #lines = corpus("command-lines/valid.txt").map((line) => line.text.split(" "));
  #grammars: Grammar[] | null = null;
  #room: CliRoom | null = null;
  #issue = "";
  #left = 0;

  constructor(scratch: string) {
    this.#git = emptyRepository(scratch);
  }

  async try(prng: Prng, count: Count): Promise<void> {
    this.#grammars ??= await grammars();
    if (this.#left-- <= 0 || this.#room === null) await this.#open(prng);
    const room = this.#room!;
    const args = this.#arguments(new Mutator(prng));
    const before = room.picture();
    this.#room = null;
    const said = await withWords(args, () => room.run(args));
    count(said.code === null ? "command line accepted" : `command line: ${said.code}`);
    const shown = JSON.stringify(args).slice(0, 400);
    // These depend on what was done before, and are found out under the mutex.
    const isLater = /was used for another operation|somebody's live lease needs a reason/.test(
      said.err + said.out,
    );
    // Which document is meant depends on those that the issue has.
    const isMeant = findCommand(args)?.name === "doc remove" && said.code === "E_PATH_ESCAPE";
    const changed = changes(before, room.picture()).filter((path) => !DERIVED.test(path));
    if (said.code !== null && WRITES_NOTHING.includes(said.code) && !isLater && !isMeant)
      expectThat(changed.length === 0, `${said.code} for ${shown}, and yet written: ${changed.join(", ")}`);
    const outside = changed.filter(
      (path) =>
        !path.startsWith(`${CONTROL}/`) &&
        !path.startsWith("/repo/.cotenant/") &&
        !INSTALLING.some(({ words, where }) => words.some((word) => args.includes(word)) && where.test(path)),
    );
    expectThat(outside.length === 0, `${shown} wrote outside the control plane: ${outside.join(", ")}`);
    this.#room = room;
  }

  async #open(prng: Prng): Promise<void> {
    const room = new CliRoom(prng.below(1_000_000), this.#git);
    const created = await room.run(["issue", "create", "--title", "Some work", "--json"]);
    this.#issue = (JSON.parse(created.out) as { data: { issue: { id: string } } }).data.issue.id;
    // Some find a repository in use, others one in which the least trace shows.
    if (prng.chance(0.7)) {
      await room.run(["claim", "acquire", this.#issue]);
      await room.run(["lock", "acquire", "README", "--dir", "src", "--agent-id", "agent:b"]);
    }
    this.#room = room;
    this.#left = LINES_PER_ROOM;
  }

  #arguments(mutator: Mutator): string[] {
    const { prng } = mutator;
    const args = prng.chance(0.5) ? this.#invented(mutator) : [...prng.pick(this.#lines)];
    for (let edits = prng.below(4); edits > 0; edits--) edit(args, mutator);
    const named = args.map((arg) => arg.replaceAll("ISSUE", this.#issue).replaceAll("\0", ""));
    return harmless(named);
  }

  #invented({ prng }: Mutator): string[] {
    const { name, flags } = prng.pick(this.#grammars!);
    const args = name.split(" ");
    for (let words = prng.below(3); words > 0; words--)
      args.push(prng.pick(["ISSUE", "README", "src", "new.ts", "7x3k"]));
    for (let more = prng.below(4); more > 0; more--) {
      const flag = prng.pick(flags);
      if (!flag.takesValue) args.push(`--${flag.name}`);
      else if (prng.chance(0.5)) args.push(`--${flag.name}`, valueFor(flag.name, prng));
      else args.push(`--${flag.name}=${valueFor(flag.name, prng)}`);
    }
    return args;
  }
}

/** Reads may keep what they read for the next one, and whoever looks after hooks what these looked like. */
const DERIVED = new RegExp(`^${CONTROL}/(?:cache|hooks-seen)/`);

/** What may put hooks there, Git's or those of agents, or take them away. */
const INSTALLING = [
  { words: ["exec"], where: /^\/repo\/\.agent-cache\// },
  { words: ["hooks", "init", "deinit"], where: /^\/repo\/\.git\/hooks\// },
  {
    words: ["agent", "deinit"],
    where: /^\/repo\/\.(?:git\/info|claude|codex|cursor|gemini|github|opencode|qwen|pi)\/|^\/user\/\./,
  },
];

/** A finding says which command line it was. */
async function withWords<T>(args: readonly string[], call: () => Promise<T>): Promise<T> {
  // Hooks read what Git tells them, and this process may have an input that never ends.
  Object.defineProperty(process, "stdin", { value: Readable.from([]), configurable: true });
  try {
    return await call();
  } catch (error) {
    throw new Finding(`${JSON.stringify(args).slice(0, 400)}: ${(error as Error).message}`);
  }
}

const VALUES: Readonly<Record<string, readonly string[]>> = {
  ttl: ["0", "1", "600", "86400", "-1", "1e400", "0x10", "NaN", "9".repeat(16), "9".repeat(15), " 5", ""],
  timeout: ["0", "1", "2", "-1", "604801", "soon", "1e400", "NaN"],
  "agent-id": ["agent:b", "human:h", "admin:x", "ci:1", "robot:x", "agent:", `agent:${"x".repeat(101)}`],
  session: ["default", "s1", "", "a b", "x".repeat(129)],
  "request-id": [
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
    "01KDVDNA00255VRT5T20530RD0",
    "1",
  ],
  "to-agent": ["agent:b", "nobody"],
  "to-worktree": ["wt:00000001", "main"],
  reason: ["because", "", " ", "r".repeat(1_001), "é\u{1f4be}"],
  ref: ["refs/heads/main", "main", "refs/heads/a..b"],
  dir: [".", "src", "link-in", "link-out", "../x", ".git"],
};

function valueFor(flag: string, prng: Prng): string {
  return prng.pick(VALUES[flag] ?? ["x", "", "src", "ready", "1", "__proto__"]);
}

function edit(args: string[], mutator: Mutator): void {
  const { prng } = mutator;
  const at = prng.below(args.length + 1);
  switch (prng.below(7)) {
    case 0:
      args.splice(at, 1);
      break;
    case 1:
      args.splice(at, 0, args[prng.below(args.length)] ?? "");
      break;
    case 2:
      args.splice(
        at,
        0,
        prng.pick(["--", "-", "--json", "--help", "--quiet", "-h", "--=", "--no-json", "--json=1"]),
      );
      break;
    case 3:
      args.splice(at, 0, `--${mutator.hostileText()}`);
      break;
    case 4:
      args.splice(at, 0, mutator.hostileText());
      break;
    default:
      if (args[at] !== undefined) args[at] = mutator.text(args[at]);
  }
}

/** No demo is started, and nobody follows or waits for days: those command lines are fine and have nothing to tell here. */
function harmless(args: string[]): string[] {
  if (args.some((arg) => ["demo", "version", "--follow"].includes(arg))) return [...args, "--surplus"];
  const waits = args.indexOf("--wait");
  if (waits !== -1 && !args.some((arg) => arg.startsWith("--timeout")))
    args.splice(waits, 0, "--timeout", "1");
  // `claim next` looks once in a second: a day of that is a long time also where time is simulated.
  if (waits !== -1 && args.includes("next"))
    for (const [at, arg] of args.entries()) args[at] = arg.replace(/^(--timeout=)?\d{2,}$/, "$12");
  return args;
}

async function grammars(): Promise<Grammar[]> {
  return Promise.all(
    Object.entries(COMMANDS).map(async ([name, { load }]) => {
      const { flags } = await load();
      const all = Object.entries({ ...COMMON_FLAGS, ...flags });
      return {
        name,
        flags: all.map(([flag, { value }]) => ({ name: flag, takesValue: value !== undefined })),
      };
    }),
  );
}

function changes(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const changed = [...after].filter(([path, text]) => before.get(path) !== text).map(([path]) => path);
  return [...changed, ...[...before.keys()].filter((path) => !after.has(path))];
}
