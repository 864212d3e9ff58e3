import { spawnSync } from "node:child_process";
import * as fs from "node:fs";
import * as path from "node:path";
import { describe, expect, it } from "vitest";
import { driverCommand, installationIn } from "../../src/features/issues/merge-driver";
import { withLines } from "../../src/identity/data-plane";
import { scratch } from "../support/scratch";

const bytes = (text: string) => Uint8Array.from(Buffer.from(text, "latin1"));
const added = (found: string, ...lines: string[]) => {
  const whole = withLines(bytes(found), lines);
  return whole === null ? null : Buffer.from(whole).toString("latin1");
};

describe("lines added to somebody's file", () => {
  it.each([
    ["", "a\nb\n"],
    ["x\n", "x\na\nb\n"],
    ["x", "x\na\nb\n"],
    ["x\r\ny\r\n", "x\r\ny\r\na\r\nb\r\n"],
    ["x\r\nb", "x\r\nb\r\na\r\n"],
    ["a\n\n", "a\n\nb\n"],
    ["\n", "\na\nb\n"],
    ["caf\xe9 \x80\n", "caf\xe9 \x80\na\nb\n"],
    ["b\r\na", null],
  ])("%j becomes %j", (found, wanted) => {
    expect(added(found, "a", "b")).toBe(wanted);
  });
});

describe("the command that Git runs", () => {
  const places = [
    "/usr/bin/node",
    '/opt/it\'s 100% "new"/%A $HOME `x`',
    "/a'b''c",
    "C:\\Program Files\\node.exe",
  ];

  it.each(places)("names its installation, however odd: %s", (place) => {
    const installation = { node: place, program: `${place}/cotenant` };
    expect(installationIn(driverCommand(installation))).toEqual(installation);
  });

  it("is nobody else's", () => {
    expect(installationIn("other-driver %O %A %B")).toBeNull();
  });

  it("gives the program its words, through a shell, as they are", () => {
    const folder = path.join(scratch(), "it's 100% $HOME");
    fs.mkdirSync(folder);
    const program = path.join(folder, "say");
    fs.writeFileSync(program, 'for word in "$@"; do echo "<$word>"; done\n');
    const command = driverCommand({ node: "/bin/sh", program })
      .replaceAll("%%", "%")
      .replaceAll("%L", "7")
      .replaceAll("%P", "'a b'");
    const ran = spawnSync("/bin/sh", ["-c", command], { encoding: "utf8" });
    const words = ["merge-issue", "--marker-size=7", "--", "%O", "%A", "%B", "a b", "%X", "%Y"];
    expect(ran.stdout).toBe(words.map((word) => `<${word}>\n`).join(""));
    expect(ran.status).toBe(0);
  });
});
