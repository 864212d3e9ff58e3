import { during } from "../errors/cotenant-error";
import type { Git } from "../platform/git";
import type { Platform } from "../platform/platform";
import { writeNew } from "../platform/write-new";
import type { ObjectId } from "./object-name";
import { type RefPlace, readRef, syncRefs } from "./refs";

/** What it takes to make one. */
export interface NewRefPlace extends RefPlace {
  /** A name for its file before it is a ref; on the same file system, and cleared away by whoever finds it there. */
  readonly aside: string;
}

/**
 * A ref that nobody else can be making, because its name was drawn a moment ago: left as Git itself would leave it, without
 * the start of one. Where Git keeps refs as files, one that appears whole and by rename needs no lock: locks keep writers
 * of one name apart, and there is only this one.
 */
export class NewRef {
  constructor(
    private readonly platform: Platform,
    private readonly place: NewRefPlace,
    readonly ref: string,
  ) {}

  /** Its file, synced, still aside. Its object need not be there yet. */
  async stage(oid: ObjectId): Promise<void> {
    const { files } = this.platform;
    const { aside } = this.place;
    await during("writing a ref", aside, async () => {
      await writeNew(files, aside, `${oid}\n`, (await this.#modes()).file, (fd) => files.syncAll([fd], []));
    });
  }

  /** Once its object is on the disk. False where Git has to do it: the name is taken, or something odd is in the way. */
  async appear(git: Git): Promise<boolean> {
    const { files } = this.platform;
    const isTaken = (await readRef(this.platform, git, this.place, this.ref)) !== null;
    if (isTaken || !(await this.#rename())) {
      await files.unlink(this.place.aside);
      return false;
    }
    await during("writing a ref", this.place.commonDir, () =>
      syncRefs(this.platform, this.place, [this.ref]),
    );
    return true;
  }

  async #rename(): Promise<boolean> {
    const { files } = this.platform;
    const { commonDir, aside } = this.place;
    const { directory } = await this.#modes();
    // `git pack-refs` takes away directories that it has emptied.
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
      try {
        for (let end = this.ref.indexOf("/", 5); end !== -1; end = this.ref.indexOf("/", end + 1))
          await files.makeDirectory(`${commonDir}/${this.ref.slice(0, end)}`, directory);
        await files.rename(aside, `${commonDir}/${this.ref}`);
        return true;
      } catch {
        // Git says better what is in the way.
      }
    }
    return false;
  }

  /** As open as the refs that are there already. */
  async #modes(): Promise<{ readonly file: number; readonly directory: number }> {
    const mode = (await this.platform.files.stat(`${this.place.commonDir}/refs`))?.mode ?? 0o700;
    return { file: (mode & 0o666) | 0o600, directory: mode };
  }
}

const MOST_ATTEMPTS = 3;
