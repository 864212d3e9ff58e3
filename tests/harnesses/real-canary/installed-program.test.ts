import * as fs from "node:fs";
import * as path from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { versionIn } from "../../../src/features/harnesses/real-canary/installed-program";
import { writerOf } from "../../../src/features/harnesses/state";
import { findProgram } from "../../../src/platform/node/programs";
import { scratch } from "../../support/scratch";

let room: string;
beforeEach(() => {
  room = scratch();
});

function put(name: string, mode = 0o755): string {
  const file = path.join(room, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, "#!/bin/sh\n", { mode });
  return file;
}

describe("a program", () => {
  const find = (folders: readonly string[], home: string | null = path.join(room, "home")) =>
    findProgram("claude", [".claude/local"], { path: folders.join(":"), home });

  it("is the first on the PATH that can be run", () => {
    put("a/claude", 0o644);
    fs.mkdirSync(path.join(room, "b/claude"), { recursive: true });
    const [first] = [put("c/claude"), put("d/claude")];
    expect(find(["a", "b", "c", "d"].map((name) => path.join(room, name)))).toBe(first);
  });

  it("is where its installer puts it, if it is not on the PATH", () => {
    const installed = put("home/.claude/local/claude");
    expect(find([])).toBe(installed);
    expect(find([], null)).toBe(null);
    const own = put("bin/claude");
    expect(find([path.join(room, "bin")])).toBe(own);
  });

  it("is not looked for in folders that mean another one elsewhere", () => {
    put("claude");
    expect(find(["", ".", path.relative(process.cwd(), room)])).toBe(null);
  });

  it.each([
    ["2.1.325 (Claude Code)\n", "2.1.325"],
    ["codex-cli 0.166.0", "0.166.0"],
    ["GitHub Copilot CLI 1.0.102.\nRun 'copilot update'", "1.0.102"],
    ["v1.2.3-beta.4+5", "1.2.3-beta.4+5"],
    ["please log in", null],
  ])("says its version: %j", (printed, version) => {
    expect(versionIn(printed)).toBe(version);
  });
});

describe("the lines in somebody's settings", () => {
  const own = { node: "/usr/bin/node", program: "/opt/cotenant" };
  const other = { node: "/opt/node", program: "/opt/old/cotenant" };

  it("are written again by the program that they name", () => {
    expect(writerOf({ program: other, isByHand: false, via: null }, own)).toEqual({
      installer: other,
      isShared: false,
      via: "program",
    });
  });

  it("go the same way to the guard", () => {
    const via = { daemon: "/srv/app/.git/cotenant/daemon/1000", http: null };
    expect(writerOf({ program: other, isByHand: false, via }, own)).toMatchObject({ via: "daemon" });
  });

  it("are those for everybody where they look on the PATH, unless a person wrote them", () => {
    expect(writerOf({ program: null, isByHand: false, via: null }, own)).toMatchObject({
      installer: own,
      isShared: true,
    });
    expect(writerOf({ program: null, isByHand: true, via: null }, own)).toMatchObject({
      installer: own,
      isShared: false,
    });
  });

  it("are this program's where there are none", () => {
    expect(writerOf(null, own)).toEqual({ installer: own, isShared: false, via: "program" });
  });
});
