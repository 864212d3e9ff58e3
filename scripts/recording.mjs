/**
 * Records a real session in a scratch repository, on a real terminal, as docs/tour.svg.
 *
 *   node scripts/recording.mjs [<file>]
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { ensureBuilt } from "./build.mjs";
import { ROOT, say } from "./project.mjs";

const COLUMNS = 96;

/** What is typed, and what is said to it in the picture. */
export const SESSION = [
  "cotenant init --quiet",
  "export COTENANT_AGENT_ID=agent:ada",
  "cotenant lock acquire src/app.ts --reason 'passkeys'",
  "cotenant lock acquire --dir src --agent-id agent:bob",
  "cotenant lock acquire --resource staging-db --ttl 6 --quiet",
  "cotenant lock acquire --resource staging-db --agent-id agent:bob --wait --timeout 30",
  "cotenant lock release --resource staging-db",
  "cotenant status",
];

/** Each command with what the terminal showed, colours and all. */
export function record() {
  const room = mkdtempSync(join(tmpdir(), "cotenant-tour-"));
  const root = join(room, "shop");
  try {
    mkdirSync(join(room, "bin"));
    symlinkSync(join(ROOT, "bin/cotenant"), join(room, "bin/cotenant"));
    const env = {
      PATH: `${join(room, "bin")}${delimiter}${process.env.PATH}`,
      HOME: room,
      TERM: "xterm-256color",
      LC_ALL: "C.UTF-8",
      GIT_CONFIG_NOSYSTEM: "1",
    };
    execFileSync("git", ["init", "--quiet", root], { env });
    return SESSION.map((typed) => {
      const set = /^export (\w+)=(.*)$/.exec(typed);
      if (set === null) return { typed, shown: onTerminal(typed, root, env).replaceAll(root, "~/shop") };
      env[set[1]] = set[2];
      return { typed, shown: "" };
    });
  } finally {
    rmSync(room, { recursive: true, force: true });
  }
}

/** `script` gives the command a terminal of its own; without one there would be no colours and no widths. */
function onTerminal(typed, cwd, env) {
  const line = `stty cols ${COLUMNS} rows 40; ${typed}`;
  const ended = spawnSync("script", ["--quiet", "--command", line, "/dev/null"], {
    cwd,
    env,
    encoding: "utf8",
  });
  if (ended.error) throw ended.error;
  return ended.stdout.replaceAll("\r", "").trimEnd();
}

const SIZE = 14;
const LINE = 20;
const WIDTH = Math.ceil(COLUMNS * SIZE * 0.6) + 32;
const COLORS = { 31: "#f47067", 32: "#8ddb8c", 33: "#daaa3f", 36: "#76e3ea" };

/** The session as a picture: text, so that it can be searched and read aloud. */
export function picture(session) {
  const lines = session.flatMap(({ typed, shown }) => [
    `<tspan fill="#8ddb8c">$</tspan> <tspan font-weight="bold">${escaped(typed)}</tspan>`,
    ...(shown === "" ? [] : shown.split("\n").flatMap(wrapped).map(styled)),
    "",
  ]);
  const text = lines.map(
    (line, i) => `<text x="16" y="${56 + i * LINE}" xml:space="preserve">${line}</text>`,
  );
  const height = 56 + lines.length * LINE;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="A session with cotenant">
<rect width="100%" height="100%" rx="8" fill="#22272e"/>
<circle cx="22" cy="20" r="6" fill="#f47067"/><circle cx="42" cy="20" r="6" fill="#daaa3f"/><circle cx="62" cy="20" r="6" fill="#8ddb8c"/>
<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, monospace" font-size="${SIZE}" fill="#adbac7">
${text.join("\n")}
</g>
</svg>
`;
}

/** A terminal breaks what is too long for it; codes take no room, so only plain lines are broken. */
function wrapped(line) {
  if (line.includes("\x1b") || line.length <= COLUMNS) return [line];
  const at = line.lastIndexOf(" ", COLUMNS);
  return [line.slice(0, at), ...wrapped(`    ${line.slice(at + 1)}`)];
}

function styled(line) {
  let open = false;
  // Only the codes that `paint` writes.
  const body = escaped(line).replace(/\x1b\[(\d+)m/g, (_, code) => {
    const end = open ? "</tspan>" : "";
    open = code !== "0";
    if (!open) return end;
    if (code === "1") return `${end}<tspan font-weight="bold">`;
    return `${end}<tspan fill="${COLORS[code] ?? "#768390"}">`;
  });
  return open ? `${body}</tspan>` : body;
}

function escaped(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  await ensureBuilt();
  const file = process.argv[2] ?? join(ROOT, "docs/tour.svg");
  writeFileSync(file, picture(record()));
  say(`wrote ${file}`);
}
