import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { applyInstall, applyUninstall, type HarnessFiles } from "../../src/features/harnesses/installation";
import { lookAt } from "../../src/features/harnesses/look";
import { type Found, planInstall, planUninstall } from "../../src/features/harnesses/plan";
import { readRecord } from "../../src/features/harnesses/record";
import { sitesOf } from "../../src/features/harnesses/sites";
import { isObjection } from "../../src/features/installer/files";
import { HARNESS_NAMES } from "../../src/identity/harness";
import { nodePlatform } from "../../src/platform/node/node";
import type { Platform } from "../../src/platform/platform";
import { dyingAt } from "../support/dying-machine";
import { pictureOf } from "../support/repo";
import { stride } from "../support/sample";
import { scratchInMemory } from "../support/scratch";

const OLD = { node: "/old/node", program: "/old/cotenant" };
const NEW = { node: "/new/node", program: "/new/cotenant" };
const THEIRS = {
  ".claude/settings.local.json": '{ "model": "opus" } // mine',
  ".gemini/settings.json": '\uFEFF{\r\n  "hooks": {\r\n    "BeforeTool": [],\r\n  },\r\n}\r\n',
  ".codex/config.toml": '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "beep"',
  "common/info/exclude": "*.o",
};

class Crashing {
  readonly room: string;
  readonly #root: string;

  constructor() {
    this.room = scratchInMemory();
    this.#root = path.join(this.room, "root");
    for (const [name, text] of Object.entries(THEIRS)) {
      const file = path.join(this.#root, name);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, text);
    }
  }

  desk(platform: Platform): HarnessFiles {
    const shelf = { directory: path.join(this.room, "shelf"), modes: { file: 0o600, directory: 0o700 } };
    return { platform, shelf, clone: { root: this.#root, commonDir: path.join(this.#root, "common") } };
  }

  async #found(desk: HarnessFiles, harness: (typeof HARNESS_NAMES)[number]): Promise<Found[]> {
    const found: Found[] = [];
    for (const site of sitesOf(harness, "project", { root: this.#root, home: null, env: {} })) {
      const file = await lookAt(desk.platform.files, site, this.#root);
      const record = await readRecord(desk.platform, desk.shelf, site.path);
      found.push({ site, file, record, standing: file.isThere && record === null ? "ignored" : "plain" });
    }
    return found;
  }

  async install(platform: Platform, program: typeof OLD): Promise<void> {
    const desk = this.desk(platform);
    const digestOf = (text: string) => platform.digest.sha256(text);
    for (const harness of HARNESS_NAMES) {
      const plan = planInstall(await this.#found(desk, harness), {
        program,
        shared: false,
        via: null,
        digestOf,
      });
      if (isObjection(plan)) throw new Error(plan.message);
      await applyInstall(desk, [plan]);
    }
  }

  async uninstall(platform: Platform): Promise<void> {
    const desk = this.desk(platform);
    const digestOf = (text: string) => platform.digest.sha256(text);
    for (const harness of HARNESS_NAMES) {
      const plan = planUninstall(await this.#found(desk, harness), { shared: false, digestOf });
      expect(plan.left).toEqual([]);
      await applyUninstall(desk, plan, () => false);
    }
  }

  /** Without what a dead writer left unfinished: nobody reads it, and it goes after a minute. */
  seen(): Record<string, string> {
    const isUnfinished = (name: string) => /\.new-[0-9a-f]{12}$/.test(name);
    for (const name of fs.readdirSync(this.room, { recursive: true, encoding: "utf8" }))
      if (isUnfinished(name)) fs.rmSync(path.join(this.room, name));
    return pictureOf(this.#root);
  }
}

/** Runs it with a death at every change in turn, until it gets through. */
async function atEveryChange(
  prepare: (room: Crashing) => Promise<void>,
  act: (room: Crashing, platform: Platform) => Promise<void>,
  judge: (room: Crashing, n: number) => Promise<void>,
): Promise<number> {
  const { first, step } = stride(4);
  for (let n = first + 1; ; n += step) {
    const room = new Crashing();
    await prepare(room);
    let isDone = true;
    await act(room, dyingAt(n)).catch(() => {
      isDone = false;
    });
    await judge(room, n);
    fs.rmSync(room.room, { recursive: true });
    if (isDone) return n;
    if (n > 2_000) throw new Error("it never gets through");
  }
}

describe("a death at any change", () => {
  const before = new Crashing().seen();
  const nothing = async () => {};
  const real = nodePlatform();

  it("of an installation can be undone to the byte, and finished", async () => {
    const most = await atEveryChange(
      nothing,
      (room, platform) => room.install(platform, NEW),
      async (room, n) => {
        room.seen();
        await room.install(real, NEW);
        await room.install(real, NEW);
        await room.uninstall(real);
        expect(room.seen(), `death ${n}`).toEqual(before);
      },
    );
    expect(most).toBeGreaterThan(40);
  });

  it("of an installation can be undone at once", async () => {
    await atEveryChange(
      nothing,
      (room, platform) => room.install(platform, NEW),
      async (room, n) => {
        room.seen();
        await room.uninstall(real);
        expect(room.seen(), `death ${n}`).toEqual(before);
      },
    );
  });

  it("of an update leaves one of two entries, and both come out to the byte", async () => {
    await atEveryChange(
      (room) => room.install(real, OLD),
      (room, platform) => room.install(platform, NEW),
      async (room, n) => {
        room.seen();
        await room.uninstall(real);
        expect(room.seen(), `death ${n}`).toEqual(before);
      },
    );
  });

  it("of a removal is finished by the next", async () => {
    await atEveryChange(
      (room) => room.install(real, NEW),
      (room, platform) => room.uninstall(platform),
      async (room, n) => {
        room.seen();
        await room.uninstall(real);
        expect(room.seen(), `death ${n}`).toEqual(before);
      },
    );
  });
});
