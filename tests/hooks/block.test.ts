import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import {
  ALL_HOOKS,
  blockText,
  comesFirst,
  findBlock,
  inserted,
  isShellScript,
  ownFile,
  programIn,
  type Style,
  withBlock,
  withoutBlock,
} from "../../src/features/hooks/installation/block";
import { binaryOf, fromBinary, readable, toBinary } from "../../src/platform/binary-text";
import { scratch } from "../support/scratch";

const PROGRAM = { node: "/opt/it's/nöde", program: "/opt/a b/cotenant" };
const GUEST: Style = { place: "guest" };
const STYLES: Style[] = [
  { place: "own" },
  { place: "own", madeDirectory: true },
  GUEST,
  { place: "guest", skipsWhenSet: "husky_skip_init" },
  { place: "around" },
  { place: "above" },
];

describe("our lines in a hook", () => {
  it.each([
    "#!/bin/sh\necho hi\n",
    "#!/bin/sh\necho hi",
    "#!/bin/sh",
    "#!/bin/sh\n",
    "#!/bin/sh\r\necho hi\r\n",
    "#!/usr/bin/env bash\n\n\n# >>> other >>>\necho hi\n# <<< other <<<\n",
    "echo no first line\n",
    "",
    "\n\n",
    "#!/bin/sh\necho \xff\xfe\x80\n",
  ])("go in and come out without a trace: %j", (script) => {
    for (const hook of ALL_HOOKS) {
      const block = blockText(hook, GUEST, PROGRAM);
      const whole = inserted(script, block)!;
      const found = findBlock(whole);
      if (found === null || found === "damaged") throw new Error(`not found in ${whole}`);
      expect(found).toMatchObject({ hook, style: GUEST, text: block });
      expect(withoutBlock(found)).toBe(script);
      expect(comesFirst(found)).toBe(true);
      expect(withBlock(found, block)).toBe(whole);
      const other = findBlock(withBlock(found, blockText(hook, GUEST, null)));
      expect(other !== null && other !== "damaged" && withoutBlock(other)).toBe(script);
    }
  });

  it("stay what they were when people write around them", () => {
    const block = blockText("pre-push", GUEST, PROGRAM);
    const whole = inserted("#!/bin/sh\necho one\n", block)!.replace("#!/bin/sh\n", "#!/bin/sh\nset -e\n");
    const found = findBlock(`${whole}echo two`);
    if (found === null || found === "damaged") throw new Error("not found");
    expect(comesFirst(found)).toBe(false);
    expect(withoutBlock(found)).toBe("#!/bin/sh\nset -e\necho one\necho two");
  });

  it.each(STYLES)("say how they came in: %o", (style) => {
    for (const hook of ALL_HOOKS)
      expect(findBlock(ownFile(blockText(hook, style, null)))).toMatchObject({ hook, style });
  });

  it("that lost their end, or their head, are damaged and not touched", () => {
    const whole = ownFile(blockText("pre-commit", { place: "own" }, PROGRAM));
    expect(findBlock(whole.replace(/# <<<.*\n/, ""))).toBe("damaged");
    expect(findBlock(whole.replace("(own)", "(odd)"))).toBe("damaged");
    expect(findBlock(whole.replace("(own) >>>", "(own)"))).toBe("damaged");
    expect(findBlock(whole.replace("<<<\n", "<<< x\n"))).toBe("damaged");
  });

  it("name the program in any spelling", () => {
    const { node, program } = programIn(blockText("pre-commit", GUEST, PROGRAM))!;
    expect([readable(node), readable(program)]).toEqual([PROGRAM.node, PROGRAM.program]);
    expect(programIn(blockText("pre-commit", GUEST, null))).toBeNull();
  });

  it.each(ALL_HOOKS)("are shell that every shell here understands: %s", (hook) => {
    const file = path.join(scratch(), hook);
    for (const style of STYLES) {
      fs.writeFileSync(file, fromBinary(ownFile(blockText(hook, style, PROGRAM))));
      for (const shell of ["sh", "bash"]) {
        const ran = spawnSync(shell, ["-n", file], { encoding: "utf8" });
        expect({ shell, style, status: ran.status, stderr: ran.stderr }).toMatchObject({
          status: 0,
          stderr: "",
        });
      }
    }
  });

  it.each([
    ["sh", "-eu"],
    ["bash", "-euo", "pipefail"],
  ])("pass where no program is, and hand on all that they were given: %s %s", (...shell) => {
    const file = path.join(scratch(), "pre-push");
    const script = '#!/bin/sh\nprintf "[%s]" "$@"\ncat\nexit 7\n';
    fs.writeFileSync(file, fromBinary(inserted(script, blockText("pre-push", GUEST, PROGRAM))!));
    const [program, ...flags] = shell as [string, ...string[]];
    const lines = "refs/heads/a $x `id` \\n 1\nrefs/heads/ü 2\n";
    for (const input of [lines, "", lines.repeat(5_000)]) {
      const ran = spawnSync(program, [...flags, file, "a b", ""], { encoding: "utf8", input });
      expect({ ...ran, output: null }).toMatchObject({ status: 7, stdout: `[a b][]${input}`, stderr: "" });
    }
  });
});

describe("what is a shell script", () => {
  it.each([
    "#!/bin/sh",
    "#!/bin/bash -e\n",
    "#! /usr/bin/env -S bash\n",
    "#!/usr/bin/env sh",
    "#!/bin/dash\r\n",
    "#!C:/Git/bin/sh.exe\n",
    "",
    "echo\n",
  ])("is: %j", (text) => expect(isShellScript(text)).toBe(true));

  it.each([
    "#!/usr/bin/env python3\n",
    "#!/usr/bin/fish\n",
    "#!/bin/csh\n",
    "#!/usr/bin/env node\nsh",
    "\x7fELF\x02\x01",
    "#!/bin/sh\n\0",
    "\xef\xbb\xbf#!/bin/sh\n",
    "#!/usr/bin/shfmt\n",
    "#!",
  ])("is not: %j", (text) => expect(isShellScript(text)).toBe(false));
});

it("bytes become text and back, all of them", () => {
  const all = Uint8Array.from({ length: 70_000 }, (_, i) => i % 256);
  expect(fromBinary(toBinary(all))).toEqual(all);
  expect(readable(binaryOf("ü🚀"))).toBe("ü🚀");
});
