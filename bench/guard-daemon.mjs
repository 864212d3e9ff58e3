/** A guard check that the daemon answers: over HTTP beside one append with `fdatasync`, and by a hook beside `node -e 0`. */
import { execFileSync, spawnSync } from "node:child_process";
import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { figure, median, quantile, row, sleep } from "./figures.mjs";
import { editEvent } from "./guard.mjs";
import { ENV, inRepository, PROGRAM } from "./room.mjs";

const SESSION = "22222222";
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 1_000);
const STARTS = Number(process.env.BENCH_ROUNDS ?? 41);
/** As long as a line of the log. */
const LINE = `${"x".repeat(700)}\n`;

export function guardDaemon() {
  return inRepository(async (root) => {
    const run = (...args) =>
      execFileSync(process.execPath, [PROGRAM, ...args, "--quiet"], { cwd: root, env: ENV });
    mkdirSync(join(root, "src"));
    writeFileSync(join(root, "src/held.ts"), "export {};\n");
    run("agent", "install", "claude", "--via", "http");
    try {
      // Settings that were changed a moment ago are looked at each time.
      await sleep(1_500);
      return [...(await overHttp(root)), ...byHook(root)];
    } finally {
      run("daemon", "stop");
    }
  });
}

/** Over one connection, as a harness keeps it; by a client that does nothing else, for its time is not ours. */
async function overHttp(root) {
  const [{ url, headers }] = settings(root).hooks.PreToolUse[0].hooks;
  const client = new Client(new URL(url), headers.Authorization);
  const log = openSync(join(root, ".git/appended"), "a");
  const times = { bare: [], held: [], granted: [] };
  const took = async (act) => {
    const started = process.hrtime.bigint();
    await act();
    return Number(process.hrtime.bigint() - started) / 1e6;
  };
  const ask = async (file) => {
    const said = await client.post(editEvent(root, SESSION, file));
    if (said.trim() !== "") throw new Error(`a check went wrong: ${said}`);
  };
  await ask("src/held.ts");
  for (let round = 0; round < ROUNDS; round++) {
    times.bare.push(
      await took(() => {
        writeSync(log, LINE);
        fdatasyncSync(log);
      }),
    );
    times.held.push(await took(() => ask("src/held.ts")));
    if (round % 10 === 0) times.granted.push(await took(() => ask(`src/new-${round}.ts`)));
  }
  client.close();
  closeSync(log);
  const beside = (q) => `one append + fdatasync ${figure(quantile(times.bare, q))} ms`;
  const ratio = (samples, q) => quantile(samples, q) / quantile(times.bare, q);
  const over = "over the daemon's HTTP hook";
  return [
    row(
      `guard check, held already, ${over}: p50`,
      `${figure(median(times.held))} ms`,
      beside(0.5),
      ratio(times.held, 0.5),
      "<= 3",
    ),
    row("  the same: p99", `${figure(quantile(times.held, 0.99))} ms`, beside(0.99), ratio(times.held, 0.99)),
    row(
      `guard check, granted, ${over}: p50`,
      `${figure(median(times.granted))} ms`,
      beside(0.5),
      ratio(times.granted, 0.5),
    ),
  ];
}

/** Start to exit: the line that `--via daemon` writes, with the daemon and without. */
function byHook(root) {
  const run = (...args) =>
    execFileSync(process.execPath, [PROGRAM, ...args, "--quiet"], { cwd: root, env: ENV });
  run("agent", "install", "claude", "--via", "daemon");
  const [{ command }] = settings(root).hooks.PreToolUse[0].hooks;
  const { COTENANT_AGENT_ID: _, ...env } = ENV;
  const timed = (words, more = {}) => {
    const started = process.hrtime.bigint();
    const input = editEvent(root, SESSION, "src/held.ts");
    const { status, stdout } = spawnSync("/bin/sh", ["-c", words], {
      cwd: root,
      env: { ...env, ...more },
      input,
    });
    if (status !== 0 || String(stdout) !== "") throw new Error(`a hook went wrong: ${status} ${stdout}`);
    return Number(process.hrtime.bigint() - started) / 1e6;
  };
  const times = { bare: [], daemon: [], program: [] };
  for (let round = 0; round <= STARTS; round++) {
    const bare = timed(`exec ${process.execPath} -e 0`);
    const daemon = timed(command);
    const program = timed(command, { COTENANT_NO_DAEMON: "1" });
    // The first round takes the lease.
    if (round === 0) continue;
    times.bare.push(bare);
    times.daemon.push(daemon);
    times.program.push(program);
  }
  const beside = `node -e 0 ${figure(median(times.bare))} ms`;
  const line = (what, samples) =>
    row(what, `${figure(median(samples))} ms`, beside, median(samples) / median(times.bare));
  return [
    line("guard check, held already, a hook that asks the daemon", times.daemon),
    line("  the same hook without the daemon", times.program),
  ];
}

function settings(root) {
  return JSON.parse(readFileSync(join(root, ".claude/settings.local.json"), "utf8"));
}

/** As much of HTTP as it takes: an answer has a length, or comes in chunks. */
class Client {
  constructor({ hostname, port, pathname }, authorization) {
    this.socket = connect(Number(port), hostname).setNoDelay(true).setEncoding("latin1");
    this.head = `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
  }

  post(body) {
    return new Promise((resolve, reject) => {
      let heard = "";
      const take = (text) => {
        heard += text;
        const end = heard.indexOf("\r\n\r\n");
        if (end === -1) return;
        const isWhole = /^Transfer-Encoding: chunked/im.test(heard)
          ? heard.endsWith("\r\n0\r\n\r\n")
          : heard.length - end - 4 >= Number(/^Content-Length: (\d+)/im.exec(heard)?.[1]);
        if (!isWhole) return;
        this.socket.off("data", take);
        const said = heard.slice(end + 4).replace(/^[0-9a-f]+\r\n|\r\n/gm, "");
        if (heard.startsWith("HTTP/1.1 200 ")) resolve(said);
        else reject(new Error(heard));
      };
      this.socket.on("data", take);
      this.socket.write(`${this.head}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    });
  }

  close() {
    this.socket.destroy();
  }
}
