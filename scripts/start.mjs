/** npm start: installs and builds what is missing, then runs the demo. */
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { join } from "node:path";
import { ensureBuilt } from "./build.mjs";
import { ensureInstalled } from "./install.mjs";
import { ROOT, say } from "./project.mjs";

function runDemo() {
  const demo = spawn(process.execPath, [join(ROOT, "bin/cotenant"), "demo", ...process.argv.slice(2)], {
    stdio: "inherit",
  });
  // A terminal sends its interrupt to both of us: the demo tidies up, and its end is ours.
  process.on("SIGINT", () => {});
  process.on("SIGTERM", () => demo.kill("SIGTERM"));
  return new Promise((resolve, reject) => {
    demo.on("error", reject);
    demo.on("close", (status, signal) => resolve(status ?? 128 + constants.signals[signal]));
  });
}

try {
  ensureInstalled();
  await ensureBuilt();
  process.exitCode = await runDemo();
} catch (error) {
  say(`npm start: ${error.message}`);
  process.exitCode = 10;
}
