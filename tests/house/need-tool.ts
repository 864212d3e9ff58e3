import { spawnSync } from "node:child_process";
import packages from "../../scripts/debian-packages.json";

/**
 * Call it at the top of a test that uses a program, or a file, of the machine. Where it is missing the test fails and says
 * how to get it; leaving the test out would look like success.
 */
export function needTool(command: string): void {
  const name = Object.entries({ ...packages.test, ...packages.verify }).find(
    ([, brings]) => brings === command,
  )?.[0];
  if (name === undefined) throw new Error(`add the package of '${command}' to scripts/debian-packages.json`);
  const look = command.startsWith("/") ? 'test -e "$1"' : 'command -v "$1"';
  const found = spawnSync("/bin/sh", ["-c", look, "sh", command]);
  if (found.status !== 0) throw new Error(`this test needs '${command}': apt-get install ${name}`);
}
