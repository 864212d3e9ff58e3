import { CotenantError } from "../errors/cotenant-error";
import type { LastingGit } from "../platform/git";
import { gitWords } from "../platform/git-answers";
import type { Platform } from "../platform/platform";
import type { ObjectPlace } from "./database";
import { nameOfObject, type ObjectFormat, type ObjectId, type ObjectType, withHeader } from "./object-name";

const TYPES: Readonly<Record<ObjectType, number>> = { commit: 1, tree: 2, blob: 3, tag: 4 };
const TIMEOUT_MS = 10 * 60_000;
/** A pack is handed to Git when it has grown to this. */
const MOST_BYTES = 64 << 20;

interface Packed {
  readonly header: Uint8Array;
  readonly body: Uint8Array;
}

/**
 * Many new objects as packs: one sync for all of them. Git itself checks, names and keeps each pack, marked as one that no
 * clearing up may touch until `release`: until then nothing refers to what is in it.
 */
export class PackWriter {
  readonly #objects = new Map<ObjectId, Packed>();
  readonly #packs: string[] = [];
  #bytes = 0;

  /** `mark` is what the mark says, in one word: whose it is. */
  constructor(
    private readonly platform: Platform,
    private readonly git: LastingGit,
    private readonly place: ObjectPlace,
    private readonly mark: string,
  ) {}

  async add(type: ObjectType, content: Uint8Array): Promise<ObjectId> {
    const oid = nameOf(this.platform, this.place.config.objectFormat, type, content);
    if (this.#objects.has(oid)) return oid;
    const body = await this.platform.compression.deflate(content);
    this.#objects.set(oid, { header: entryHeader(type, content.length), body });
    this.#bytes += body.length;
    if (this.#bytes > MOST_BYTES) await this.#hand();
    return oid;
  }

  /** Everything added so far is on the disk when this returns. */
  async flush(): Promise<void> {
    if (this.#objects.size > 0) await this.#hand();
    const directory = `${this.place.commonDir}/objects/pack`;
    if (this.#packs.length > 0) await this.platform.files.syncDirectory(directory);
  }

  /** Once something refers to all of it. */
  async release(): Promise<void> {
    for (const pack of this.#packs) await this.platform.files.unlink(`${pack}.keep`);
    this.#packs.length = 0;
  }

  async #hand(): Promise<void> {
    const { worktreeRoot, commonDir, config } = this.place;
    const objects = [...this.#objects.values()];
    const pack = encodePack(this.platform, config.objectFormat, objects, this.#bytes);
    this.#objects.clear();
    this.#bytes = 0;
    const args = ["-c", "core.fsync=pack,pack-metadata", "index-pack", `--keep=${this.mark}`, "--stdin"];
    const options = { cwd: worktreeRoot, timeoutMs: TIMEOUT_MS, input: pack };
    const { status, stdout, stderr } = await this.git.run(args, options);
    const name = /^(?:keep|pack)\t([0-9a-f]+)/.exec(new TextDecoder().decode(stdout))?.[1];
    if (status !== 0 || name === undefined)
      throw new CotenantError("E_GIT", `Git did not take the new objects: ${gitWords(stderr)}`, {
        hint: "make sure that there is room on the disk, then run the same command again",
      });
    this.#packs.push(`${commonDir}/objects/pack/pack-${name}`);
  }
}

export function nameOf(
  { digest }: Pick<Platform, "digest">,
  format: ObjectFormat,
  type: ObjectType,
  content: Uint8Array,
): ObjectId {
  return nameOfObject(digest, format, withHeader(type, content));
}

function encodePack(
  { digest }: Platform,
  format: ObjectFormat,
  objects: readonly Packed[],
  bodyBytes: number,
): Uint8Array {
  const headers = objects.reduce((sum, { header }) => sum + header.length, 0);
  const hashLength = format === "sha1" ? 20 : 32;
  const pack = new Uint8Array(12 + headers + bodyBytes + hashLength);
  const view = new DataView(pack.buffer);
  view.setUint32(0, 0x5041434b);
  view.setUint32(4, 2);
  view.setUint32(8, objects.length);
  let at = 12;
  for (const { header, body } of objects) {
    pack.set(header, at);
    pack.set(body, at + header.length);
    at += header.length + body.length;
  }
  const content = pack.subarray(0, at);
  const sum = format === "sha1" ? digest.sha1(content) : digest.sha256(content);
  for (let digit = 0; digit < sum.length; digit += 2)
    pack[at++] = Number.parseInt(sum.slice(digit, digit + 2), 16);
  return pack;
}

/** Type and length, seven bits at a time. */
function entryHeader(type: ObjectType, length: number): Uint8Array {
  const bytes: number[] = [];
  let byte = (TYPES[type] << 4) | (length & 15);
  // Not by shifting: lengths may be beyond 32 bits.
  for (let rest = Math.floor(length / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes.push(byte | 0x80);
    byte = rest % 128;
  }
  bytes.push(byte);
  return Uint8Array.from(bytes);
}
