import type { LastingGit } from "../../../src/platform/git";
import type { Prng } from "../../../testing/simulator";
import { CONTROL, sha256 } from "../../store/stage";
import { CliRoom, emptyRepository } from "./cli-room";
import { corpus, type Sample } from "./corpus";
import { expectThat, Finding } from "./finding";
import { encode, Mutator } from "./mutator";
import type { Count } from "./target";

interface Kind {
  readonly name: string;
  readonly path: string;
  /** JSON is changed by value, too. Sealed: in the file it has a checksum around it. */
  readonly form: "json" | "lines" | "sealed" | "text";
  /** What is run, and how it may be refused. */
  readonly commands: readonly (readonly [line: string, ...codes: string[]])[];
  readonly env?: Readonly<Record<string, string>>;
}

const ISSUE = "01KDVDNA00255VRT5T20530RD0";

const KINDS: readonly Kind[] = [
  {
    name: "config",
    path: "/repo/.cotenant/config.toml",
    form: "text",
    commands: [
      ["status", "E_CONFIG"],
      ["lock acquire fresh", "E_CONFIG", "E_LIMIT"],
    ],
  },
  {
    name: "agent-file",
    path: "/user/.config/cotenant/agent.toml",
    form: "text",
    env: { COTENANT_AGENT_ID: "" },
    commands: [
      ["lock acquire fresh", "E_CONFIG", "E_AGENT_ID_REQUIRED", "E_LIMIT"],
      ["status", "E_CONFIG"],
    ],
  },
  {
    name: "worktree",
    path: "/repo/.git/cotenant-worktree.json",
    form: "json",
    commands: [
      ["worktree info", "E_SCHEMA_NEWER"],
      ["worktree list"],
      ["lock acquire fresh", "E_SCHEMA_NEWER"],
    ],
  },
  {
    name: "issue",
    path: `/repo/.cotenant/issues/${ISSUE}/issue.json`,
    form: "json",
    commands: [
      ["issue list"],
      [`issue show ${ISSUE}`, "E_NOT_FOUND", "E_SCHEMA_NEWER"],
      [`claim acquire ${ISSUE}`, "E_NOT_FOUND", "E_SCHEMA_NEWER", "E_TERMINAL_STATE"],
    ],
  },
  {
    name: "secrets",
    path: `${CONTROL}/secrets/agent%3aa/default.json`,
    form: "lines",
    commands: [
      ["lock renew README", "E_SCHEMA_NEWER", "E_LOCK_NOT_HELD", "E_NOT_FOUND", "E_FENCING_MISMATCH"],
      ["status"],
      ["gc", "E_SCHEMA_NEWER"],
      ["lock acquire README", "E_SCHEMA_NEWER"],
      ["lock release README", "E_SCHEMA_NEWER"],
    ],
  },
  {
    name: "tickets",
    path: `${CONTROL}/queue/0000000001.json`,
    form: "sealed",
    commands: [
      ["lock status"],
      ["lock acquire fresh", "E_QUEUED"],
      ["lock acquire other --wait --timeout 1", "E_WAIT_TIMEOUT"],
    ],
  },
];

const TRIALS_PER_ROOM = 12;

/** The other files that we read: people's editors, other versions and bad disks wrote them. */
export class SmallFiles {
  readonly #git: LastingGit;
  readonly #seeds = new Map<string, { readonly valid: Sample[]; readonly invalid: Sample[] }>();
  #room: CliRoom | null = null;
  #left = 0;
  #tried = 0;

  constructor(scratch: string) {
    this.#git = emptyRepository(scratch);
    for (const { name } of KINDS)
      this.#seeds.set(name, { valid: corpus(`${name}/valid.txt`), invalid: corpus(`${name}/invalid.txt`) });
  }

  /** Every line of the corpora, as it stands. */
  async checkCorpora(prng: Prng, count: Count): Promise<void> {
    for (const kind of KINDS) {
      const { valid, invalid } = this.#seeds.get(kind.name)!;
      for (const { bytes } of [...valid, ...invalid]) {
        await this.check(kind.name, prng, filed(kind, bytes));
        count(`corpus: ${kind.name}`);
      }
    }
  }

  async try(prng: Prng, count: Count): Promise<void> {
    const kind = prng.pick(KINDS);
    const { valid, invalid } = this.#seeds.get(kind.name)!;
    const mutator = new Mutator(prng);
    const seed = prng.pick(prng.chance(0.7) ? valid : invalid).bytes;
    const isWhole = prng.chance(0.05);
    await this.check(kind.name, prng, isWhole ? filed(kind, seed) : spoiled(kind, seed, mutator));
    count(`file: ${kind.name}`);
  }

  /** One input, as it stands in the file. */
  async check(name: string, prng: Prng, bytes: Uint8Array): Promise<void> {
    const kind = KINDS.find((one) => one.name === name)!;
    if (this.#left-- <= 0 || this.#room === null) this.#room = await this.#open(prng);
    const room = this.#room;
    this.#room = null;
    room.world.disk.makePath(kind.path.slice(0, kind.path.lastIndexOf("/")), 0o700);
    room.world.disk.install(kind.path, bytes);
    for (const [line, ...allowed] of kind.commands) {
      const startedMs = performance.now();
      const words = line.replace(/\b(?:fresh|other)\b/, (name) => `${name}${++this.#tried}`).split(" ");
      const { code, err, out } = await room.run(
        [...words, ...(prng.chance(0.3) ? ["--json"] : [])],
        kind.env,
      );
      const said = (err || out).slice(0, 300);
      expectThat(
        code === null || allowed.includes(code),
        `${name}: "${line}" is refused with ${code}: ${said}`,
      );
      expectThat(
        performance.now() - startedMs < 60_000,
        `${name}: "${line}" took ${performance.now() - startedMs} ms`,
      );
    }
    expectThat(!("polluted" in {}), `${name}: every object has a new property now`);
    // With the file gone, nothing is left of the trouble.
    const { files } = room.world.attach("mender").platform;
    await files.unlink(kind.path);
    const after = await room.run(["lock", "acquire", "after", "--agent-id", "agent:z"]);
    if (after.code !== null)
      throw new Finding(`${name}: still ${after.code} when the file is gone: ${after.err}`);
    this.#room = room;
  }

  async #open(prng: Prng): Promise<CliRoom> {
    const room = new CliRoom(prng.below(1_000_000), this.#git);
    await room.run(["lock", "acquire", "README"]);
    this.#left = TRIALS_PER_ROOM;
    return room;
  }
}

/** As the program writes it: with its seal, where it has one. */
function filed({ form }: Kind, content: Uint8Array): Uint8Array {
  if (form !== "sealed") return content;
  const body = Buffer.from(content).toString("utf8");
  return encode(`{"sum":"${sha256(body).slice(0, 32)}","value":${body}}\n`);
}

function spoiled(kind: Kind, seed: Uint8Array, mutator: Mutator): Uint8Array {
  const { prng } = mutator;
  const value = kind.form === "text" || prng.chance(0.3) ? undefined : parsed(seed);
  if (value !== undefined)
    return filed(kind, encode(`${mutator.json(value)}${kind.form === "lines" ? "\n" : ""}`));
  if (kind.form === "text" && prng.chance(0.6))
    return encode(mutator.text(Buffer.from(seed).toString("utf8")));
  return mutator.bytes(filed(kind, seed));
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}
