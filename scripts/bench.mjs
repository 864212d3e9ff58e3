/** `npm run bench`: figures, never assertions. Each row stands beside its yardstick, measured in the same run. */
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import { coldStart } from "../bench/cold-start.mjs";
import { ensureBuilt } from "./build.mjs";
import { ensureInstalled } from "./install.mjs";

ensureInstalled();
await ensureBuilt();
const program = fileURLToPath(new URL("../bin/cotenant", import.meta.url));
const env = {
  PATH: process.env.PATH,
  HOME: "/nonexistent",
  COTENANT_AGENT_ID: "agent:bench",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
};
console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "?"}`);
console.table(coldStart({ program, env }));
