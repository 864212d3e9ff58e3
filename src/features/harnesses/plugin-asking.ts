import type { HarnessName } from "../../identity/harness";

/**
 * How a plugin passes an event on where it asks the daemon first, over its socket; the program, which `run` starts, is what it
 * falls back to. A daemon that says nothing for two seconds is left.
 */
export function askingPass(harness: HarnessName, daemon: string, program: string, run: string): string {
  return `import { readFileSync, readlinkSync, statSync } from "node:fs";
import { createConnection } from "node:net";

const DAEMON = ${JSON.stringify(daemon)};
const PROGRAM = ${JSON.stringify(program)};

${run}

async function pass(call, input, cwd, show) {
  const begunMs = performance.now();
  const answer = await ask(call, input, cwd, show).catch(() => null);
  if (answer !== null) return answer;
  const tookSecs = Math.floor((performance.now() - begunMs) / 1000);
  const leftSecs = call.timeoutSecs - Math.min(5, call.timeoutSecs / 4) - tookSecs;
  return run(call, input, cwd, show, tookSecs === 0 ? "" : \`--deadline \${Math.max(1, Math.floor(leftSecs))}\`);
}

// Where the daemon is; only what nobody else could have written is believed.
function record() {
  if (process.env.COTENANT_NO_DAEMON) return null;
  const { uid, mode } = statSync(\`\${DAEMON}.json\`);
  if (uid !== process.getuid() || (mode & 0o022) !== 0) return null;
  const said = JSON.parse(readFileSync(\`\${DAEMON}.json\`, "utf8"));
  const space = process.platform === "linux" ? readlinkSync("/proc/self/ns/pid") : "[]";
  if (space !== "[]" && space !== \`pid:[\${said.pid_namespace}]\`) return null;
  process.kill(said.pid, 0);
  return said;
}

// Null where it does not answer.
async function ask(call, input, cwd, show) {
  const said = record();
  if (said === null) return null;
  const body = Buffer.from(JSON.stringify({ env: process.env, input: JSON.stringify(input) }));
  const place = (path) => \`[\${Buffer.from(path).toString("latin1")}]\`;
  const head = [
    \`POST /guard/${harness}/\${input.event} HTTP/1.0\`,
    "Host: cotenant",
    \`Authorization: Bearer \${said.token}\`,
    "Content-Type: application/json",
    \`Content-Length: \${body.length}\`,
    \`Cotenant-Harness: \${process.pid}\`,
    \`Cotenant-Limit: \${call.timeoutSecs}\`,
    \`Cotenant-Cwd: \${place(cwd)}\`,
    \`Cotenant-Program: \${place(PROGRAM)}\`,
  ];
  if (head.some((line) => /[\\r\\n]/.test(line))) return null;
  return new Promise((resolve) => {
    const socket = createConnection(said.socket);
    const leave = () => socket.destroy();
    let silence = setTimeout(leave, 2000);
    const limit = setTimeout(leave, (call.timeoutSecs - 2) * 1000);
    let heard = "";
    socket.setEncoding("utf8");
    socket.on("connect", () => {
      socket.write(head.join("\\r\\n") + "\\r\\n\\r\\n", "latin1");
      socket.write(body);
    });
    socket.on("data", (text) => {
      clearTimeout(silence);
      silence = setTimeout(leave, 2000);
      heard = shown(heard + text, show);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(silence);
      clearTimeout(limit);
      const [, status, out, err, end] = heard.split("\\x1e");
      const isWhole = /^HTTP\\/1\\.\\d 200 /.test(heard) && end === "done" && /^[02]$/.test(status);
      resolve(isWhole ? { status: Number(status), out, err } : null);
    });
  });
}
`;
}
