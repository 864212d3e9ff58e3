import { describe, expect, it } from "vitest";
import type { InstalledHook } from "../../src/features/hooks/installation/block";
import { blockText, findBlock, ownFile } from "../../src/features/hooks/installation/block";
import type { FoundFile, FoundHook, HooksSurvey } from "../../src/features/hooks/installation/look";
import { stateOf } from "../../src/features/hooks/installation/look";
import { managerOf } from "../../src/features/hooks/installation/managers";
import type { HooksPlace } from "../../src/features/hooks/installation/place";
import { planInstall } from "../../src/features/hooks/installation/plan";
import { planUninstall } from "../../src/features/hooks/installation/removal";
import { isObjection } from "../../src/features/installer/files";

const program = { node: "/node", program: "/cotenant" };
const WISHES = { program, shared: false, force: false };
const PLACE: HooksPlace = {
  directory: "/r/.git/hooks",
  exists: true,
  setting: null,
  whose: "private",
  isOneOfMany: false,
};

function file(name: string, text: string | null, more: Partial<FoundFile> = {}): FoundFile {
  return { path: `${PLACE.directory}/${name}`, kind: "file", text, mode: 0o755, inode: 1, ...more };
}

function hook(more: Partial<FoundHook> = {}, name: InstalledHook = "pre-commit"): FoundHook {
  const { file: own = null } = more;
  return {
    hook: name,
    path: `${PLACE.directory}/${name}`,
    file: null,
    legacy: null,
    old: null,
    passedTo: null,
    kept: { around: null, above: null },
    manager: own === null ? null : managerOf(own.text ?? "", PLACE.directory),
    byHand: null,
    ...more,
  };
}

function scene(found: FoundHook, more: Partial<HooksSurvey> = {}): HooksSurvey {
  const git = { versioned: new Set<string>(), tracked: new Set<string>(), worktreeRoot: "/r" };
  const lefthook = { local: null, shared: null, localPath: "/r/lefthook-local.yml" };
  return { place: PLACE, hooks: [found], ...git, huskyDirectory: null, lefthook, ...more };
}

function only(found: FoundHook, more: Partial<HooksSurvey> = {}, wishes = WISHES) {
  const plan = planInstall(scene(found, more), wishes);
  if (isObjection(plan)) throw new Error(plan.message);
  return plan.hooks[0]!;
}

function refusal(found: FoundHook, more: Partial<HooksSurvey> = {}, wishes = WISHES) {
  const plan = planInstall(scene(found, more), wishes);
  if (!isObjection(plan)) throw new Error("expected a refusal");
  return plan;
}

describe("the plan of an installation", () => {
  it("makes a file where there is none, and remembers a directory that it made", () => {
    expect(only(hook())).toMatchObject({ action: "created", write: { mode: 0o755, kept: null } });
    const plan = planInstall(scene(hook(), { place: { ...PLACE, exists: false } }), WISHES);
    expect(plan).toMatchObject({ makes: PLACE.directory });
    expect(isObjection(plan) || plan.hooks[0]!.write!.text).toContain("(own, directory)");
  });

  it("changes nothing where it stands already, and only what is old", () => {
    const whole = ownFile(blockText("pre-commit", { place: "own" }, program));
    expect(only(hook({ file: file("pre-commit", whole) }))).toMatchObject({
      action: "unchanged",
      write: null,
    });
    const old = whole.replaceAll("/cotenant'", "/gone'");
    expect(only(hook({ file: file("pre-commit", old) }))).toMatchObject({
      action: "updated",
      write: { text: whole },
    });
    const asleep = file("pre-commit", whole, { mode: 0o644 });
    expect(only(hook({ file: asleep })).write?.mode).toBe(0o755);
  });

  it.each([
    ["python", "#!/usr/bin/env python3\n", {}],
    ["a program", "\x7fELF\0", {}],
    ["something too long to read", null, {}],
    ["a script that is switched off", "#!/bin/sh\n", { mode: 0o644 }],
    ["a link", "#!/bin/sh\n", { kind: "symlink" as const }],
  ])("keeps %s as it is, beside", (_, text, more) => {
    const found = file("pre-commit", text, more);
    expect(only(hook({ file: found }))).toMatchObject({
      action: "wrapped",
      write: { mode: 0o755, kept: { path: `${PLACE.directory}/pre-commit.before-cotenant`, from: found } },
    });
  });

  it("keeps what goes by its own name under that name", () => {
    const text = "#!/usr/bin/env ruby\n# Entrypoint for Overcommit hook integration.\n";
    const plan = only(hook({ file: file("pre-commit", text) }));
    expect(plan.write?.kept?.path).toBe(`${PLACE.directory}/before-cotenant/pre-commit`);
    expect(plan.write?.text).toContain(`"\${0%/*}/before-cotenant/pre-commit"`);
    expect(refusal(hook({ file: file("pre-commit", text, { kind: "symlink" }) })).code).toBe("E_HOOKS");
  });

  it("never writes over what it keeps, unless it is the same", () => {
    const now = file("pre-commit", "#!/usr/bin/perl\n1\n");
    const kept = (text: string, inode: number) => ({
      around: file("pre-commit.before-cotenant", text, { inode }),
      above: null,
    });
    expect(refusal(hook({ file: now, kept: kept("#!/usr/bin/perl\n2\n", 2) })).hint).toContain("compare");
    expect(only(hook({ file: now, kept: kept("#!/usr/bin/perl\n1\n", 2) })).action).toBe("wrapped");
    expect(only(hook({ file: now, kept: kept("#!/usr/bin/perl\n1\n", 1) })).action).toBe("wrapped");
  });

  it("stands where the framework pre-commit runs it first", () => {
    const theirs = file("pre-commit", "#!/usr/bin/env bash\n# File generated by pre-commit: …\n");
    expect(only(hook({ file: theirs }))).toMatchObject({
      action: "created",
      path: `${PLACE.directory}/pre-commit.legacy`,
      manager: "pre-commit",
    });
    const legacy = file("pre-commit.legacy", "#!/bin/sh\necho old\n");
    expect(only(hook({ file: theirs, legacy }))).toMatchObject({ action: "added", path: legacy.path });
  });

  it("asks before it changes what is committed, and then names no path of one machine", () => {
    const path = `${PLACE.directory}/pre-commit`;
    const found = hook({ file: file("pre-commit", "#!/bin/sh\n") });
    const shared = { place: { ...PLACE, whose: "worktree" as const }, versioned: new Set([path]) };
    expect(refusal(found, shared)).toMatchObject({ code: "E_HOOKS", path });
    const plan = only(found, shared, { ...WISHES, shared: true });
    expect(plan).toMatchObject({ action: "added", isShared: true });
    expect(plan.write?.text).not.toContain("/node");
    expect(refusal(found, {}, { ...WISHES, shared: true }).code).toBe("E_USAGE");
  });

  it("asks before it changes what other repositories use, and where nothing runs it says so", () => {
    const outside = {
      place: { ...PLACE, whose: "outside" as const, setting: { value: "/h", scope: "global" } },
    };
    expect(refusal(hook(), outside).hint).toContain("--force");
    expect(only(hook(), outside, { ...WISHES, force: true }).action).toBe("created");
    const nowhere = {
      place: { ...PLACE, whose: "nowhere" as const, setting: { value: "", scope: "global" } },
    };
    expect(refusal(hook(), nowhere).hint).toContain("git config --global --unset-all core.hooksPath");
  });

  it("with husky stands in its own file, or with --shared in the committed one", () => {
    const directory = "/r/.husky/_";
    const theirs = {
      ...file("pre-commit", `#!/usr/bin/env sh\n. "\${0%/*}/h"`),
      path: `${directory}/pre-commit`,
    };
    const found = hook({ file: theirs, path: theirs.path, manager: "husky" });
    const place: HooksPlace = { ...PLACE, directory, whose: "worktree" };
    const more = { place, huskyDirectory: "/r/.husky", versioned: new Set(["/r/.husky/pre-commit"]) };
    expect(only(found, more)).toMatchObject({ action: "added", path: theirs.path, isShared: false });
    const wishes = { ...WISHES, shared: true };
    expect(only(found, more, wishes)).toMatchObject({ action: "created", path: "/r/.husky/pre-commit" });
    const passedTo = { ...file("", "npm test\n", { mode: 0o644 }), path: "/r/.husky/pre-commit" };
    const plan = only({ ...found, passedTo }, more, wishes);
    expect(plan).toMatchObject({ action: "added", write: { mode: 0o644 } });
    const done = { ...found, passedTo: { ...passedTo, text: plan.write!.text } };
    expect(only(done, more)).toMatchObject({ action: "unchanged", path: "/r/.husky/pre-commit" });
    expect(refusal(found, { ...more, place: { ...place, exists: false } }).hint).toContain("npx husky");
  });

  it("leaves alone what somebody wrote by hand, and what is damaged", () => {
    const found = hook({ file: file("pre-commit", "#!/bin/sh\ncotenant hook pre-commit\n"), byHand: "/r/x" });
    expect(only(found)).toMatchObject({ action: "unchanged", path: "/r/x", write: null });
    const text = ownFile(blockText("pre-commit", { place: "own" }, program)).replace(/# <<<.*/, "");
    expect(refusal(hook({ file: file("pre-commit", text) })).message).toContain("damaged");
  });
});

describe("the plan of taking it out", () => {
  const how = { shared: false, force: false };
  const planned = (found: FoundHook, more: Partial<HooksSurvey> = {}, wishes = how) =>
    planUninstall(scene(found, more), wishes);
  const own = ownFile(blockText("pre-commit", { place: "own" }, program));

  it("finds ours wherever managers have moved them", () => {
    for (const slot of ["file", "legacy", "old"] as const)
      expect(planned(hook({ [slot]: file(`pre-commit.${slot}`, own) })).removals).toMatchObject([
        { action: "removed", path: `${PLACE.directory}/pre-commit.${slot}` },
      ]);
  });

  it("keeps what people added to a file of ours", () => {
    expect(planned(hook({ file: file("pre-commit", `${own}echo mine\n`) })).removals).toMatchObject([
      { action: "taken_out", text: "#!/bin/sh\necho mine\n" },
    ]);
  });

  it("restores what was kept, but not over what people added", () => {
    const around = file("pre-commit", ownFile(blockText("pre-commit", { place: "around" }, program)));
    const kept = { around: file("pre-commit.before-cotenant", "#!/usr/bin/perl\n"), above: null };
    expect(planned(hook({ file: around, kept })).removals).toMatchObject([
      { action: "restored", from: kept.around.path, path: around.path },
    ]);
    const edited = { ...around, text: `${around.text}echo mine\n` };
    expect(planned(hook({ file: edited, kept }))).toMatchObject({
      removals: [],
      left: [{ path: around.path, why: expect.stringContaining("somebody added") }],
    });
    expect(planned(hook({ file: around })).removals).toMatchObject([{ action: "removed" }]);
  });

  it("clears a second name away, and leaves what nobody runs any more to people", () => {
    const now = file("pre-commit", "#!/usr/bin/perl\n");
    const kept = (inode: number) => ({
      around: file("pre-commit.before-cotenant", "x", { inode }),
      above: null,
    });
    const path = `${PLACE.directory}/pre-commit.before-cotenant`;
    expect(planned(hook({ file: now, kept: kept(1) }))).toMatchObject({
      removals: [{ path, action: "removed" }],
      left: [],
    });
    expect(planned(hook({ file: now, kept: kept(2) }))).toMatchObject({ removals: [], left: [{ path }] });
  });

  it("leaves what belongs to everybody, unless told", () => {
    const found = hook({ file: file("pre-commit", own) });
    const versioned = new Set([found.path]);
    expect(planned(found, { versioned })).toMatchObject({ removals: [], left: [{ path: found.path }] });
    expect(planned(found, { versioned }, { ...how, shared: true }).removals).toHaveLength(1);
    const place = { ...PLACE, whose: "outside" as const };
    expect(planned(found, { place })).toMatchObject({ removals: [], left: [{ path: found.path }] });
    expect(planned(found, { place }, { ...how, force: true }).removals).toHaveLength(1);
  });
});

describe("how a hook stands", () => {
  const own = ownFile(blockText("pre-commit", { place: "own" }, program));
  it.each([
    ["missing", hook()],
    ["foreign", hook({ file: file("pre-commit", "#!/bin/sh\n") })],
    ["installed", hook({ file: file("pre-commit", own) })],
    ["installed", hook({ file: file("pre-commit", "#!/bin/sh\n"), byHand: "/r/lefthook.yml" })],
    ["outdated", hook({ file: file("pre-commit", own.replace("64 |", "")) })],
    ["outdated", hook({ file: file("pre-commit", own.replace(/# <<<.*/, "")) })],
    // Nobody runs it there.
    ["foreign", hook({ file: file("pre-commit", "LEFTHOOK"), old: file("pre-commit.old", own) })],
    ["foreign", hook({ file: file("pre-commit", "#!/bin/sh\n"), legacy: file("pre-commit.legacy", own) })],
  ])("%s", (state, found) => {
    expect(stateOf(found).state).toBe(state);
  });

  it("tries only what reaches our lines first", () => {
    expect(stateOf(hook({ file: file("pre-commit", own) })).trial).toBe("itself");
    const late = own.replace("#!/bin/sh\n", "#!/bin/sh\nrm -rf x\n");
    expect(stateOf(hook({ file: file("pre-commit", late) })).trial).toBeNull();
    expect(findBlock(late)).not.toBeNull();
  });
});
