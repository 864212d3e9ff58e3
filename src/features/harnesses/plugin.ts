import type { HarnessName } from "../../identity/harness";
import { HARNESSES, hookArguments } from "../guard/harness";
import type { Program } from "../installer/files";
import { programIn, shellLine, type Via } from "./command-line";
import { OPENCODE_PLUGIN } from "./opencode-plugin";
import { PI_EXTENSION } from "./pi-extension";
import { askingPass } from "./plugin-asking";

type Digesting = (text: string) => string;

/** Programs that harnesses load into their own process, instead of starting a hook. */
const BODIES: Readonly<Partial<Record<HarnessName, string>>> = {
  opencode: OPENCODE_PLUGIN,
  pi: PI_EXTENSION,
};

/**
 * The program that a harness loads. It passes each event on to the guard, as one JSON object on standard input, and
 * refuses what the guard refuses.
 */
export function pluginText(
  harness: HarnessName,
  program: Program,
  digestOf: Digesting,
  via: Via = null,
): string {
  const asked = program === null ? null : via;
  const calls = HARNESSES[harness].events.map((event) => {
    const { name, matcher, timeoutSecs } = event;
    const args = [...hookArguments(harness, event), ...(asked === null ? [] : ["--via", asked.daemon])];
    const line = shellLine(program, args, asked === null ? ' --pid "$1"' : ' --pid "$1" $2');
    return [name, { tools: matcher, timeoutSecs, line }];
  });
  const table = JSON.stringify(Object.fromEntries(calls), null, 2);
  const body = (BODIES[harness] ?? "")
    .replace("THE_CALLS", () => table)
    .replace("THE_PASS", () =>
      asked === null ? PASS : askingPass(harness, asked.daemon, program!.program, RUN),
    );
  return `${beginFor(harness)} [${markOf(body, digestOf)}]\n${body}`;
}

function beginFor(harness: HarnessName): string {
  return `// cotenant: by 'cotenant agent install ${harness}'; 'cotenant agent uninstall ${harness}' removes this file while it is unchanged`;
}

function markOf(body: string, digestOf: Digesting): string {
  return digestOf(body).slice(0, 16);
}

export const CHANGED_BY_HAND = "it was changed by hand";

/** Whether it is as one of our versions wrote it: the first line says what the rest was. Git may change line ends. */
export function isAsWritten(text: string, digestOf: Digesting): boolean {
  const [first = "", ...rest] = text.replaceAll("\r\n", "\n").split("\n");
  return /\[([0-9a-f]{16})\]$/.exec(first)?.[1] === markOf(rest.join("\n"), digestOf);
}

/** Whether a file is one of ours, of whatever version. */
export function isPlugin(text: string): boolean {
  return text.startsWith("// cotenant: by 'cotenant agent install");
}

export function programOfPlugin(text: string): Program {
  const found = /"line": ("(?:[^"\\]|\\.)*")/.exec(text)?.[1];
  return found === undefined ? null : programIn(JSON.parse(found) as string);
}

/** Which daemon a plugin asks first. */
export function viaOfPlugin(text: string): Via {
  const found = /^const DAEMON = ("(?:[^"\\]|\\.)*");$/m.exec(text)?.[1];
  return found === undefined ? null : { daemon: JSON.parse(found) as string, http: null };
}

/** Starts the program. One line of what that says may be that it has begun to wait, for people to see at once. */
const RUN = `function shown(text, show) {
  return text.replace(/^\\{"waits":.*\\}\\n/m, (line) => {
    try {
      const { message, until, waitMs } = JSON.parse(line).waits;
      show(\`\${message} until \${new Date(until).toLocaleTimeString()}\`, waitMs);
    } catch {
      // What cannot be shown is no reason to stop the harness.
    }
    return "";
  });
}

function run(call, input, cwd, show, ...more) {
  return new Promise((resolve) => {
    const words = ["-c", call.line, "cotenant", String(process.pid), ...more];
    const child = spawn("/bin/sh", words, { cwd, timeout: call.timeoutSecs * 1000 });
    let [out, err] = ["", ""];
    child.stdout.on("data", (chunk) => (out += chunk));
    child.stderr.on("data", (chunk) => (err = shown(err + chunk, show)));
    child.stdin.on("error", () => {});
    child.on("error", () => resolve({ status: null, out: "", err: "" }));
    child.on("close", (status) => resolve({ status, out, err }));
    child.stdin.end(JSON.stringify(input));
  });
}`;

const PASS = `${RUN}

const pass = run;`;
