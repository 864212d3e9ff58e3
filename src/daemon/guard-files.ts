import * as fs from "node:fs";
import { deadlineMs } from "../features/guard/harness";
import { lineWord } from "../features/harnesses/command-line";
import type { HookPlace } from "./hook-place";

/** Between the parts of an answer. No harness is told anything that has it. */
export const SEPARATOR = "\x1e";
/** The last part: whatever has it is whole. */
export const WHOLE = "done";
/** As the name of a host in requests over the socket. */
export const SOCKET_HOST = "cotenant";
export const SHELL_TYPE = "application/vnd.cotenant.hook";

export interface Whereabouts {
  readonly socket: string;
  readonly token: string;
  /** Ours, and under which number we have which lock open. */
  readonly pid: number;
  readonly lockFd: number;
  readonly lock: string;
  readonly pidNamespace: string;
}

/**
 * How long a check may take that the harness waits so long for: as long as the program's own, so that it may wait for a file just
 * as long; but less than curl, after which there must be time for the program.
 */
export function guardPatienceMs(limitSecs: number): number {
  const curlSecs = limitSecs - Math.min(3, Math.max(1, Math.floor(limitSecs / 10)));
  return Math.max(500, Math.min(deadlineMs({ timeoutSecs: limitSecs }), curlSecs * 1000 - 500));
}

/** Leaves what hooks and plugins need to ask us. The script comes last: it is what is looked for. */
export function leaveFiles(place: HookPlace, whereabouts: Whereabouts): void {
  put(place.curl, curlConfig(whereabouts));
  put(place.record, record(place, whereabouts));
  put(place.script, script(place, whereabouts));
}

/** Only those of the daemon with this token: another one may have come to the same place meanwhile. */
export function removeFiles({ curl, script: file, record: other }: HookPlace, token: string): void {
  if (fs.existsSync(other) && !fs.readFileSync(other, "utf8").includes(token)) return;
  for (const path of [file, other, curl]) fs.rmSync(path, { force: true });
}

function record({ controlDir }: HookPlace, { socket, token, pid, pidNamespace }: Whereabouts): string {
  const said = { schema_version: 1, control: controlDir, pid, pid_namespace: pidNamespace, socket, token };
  return `${JSON.stringify(said, null, 2)}\n`;
}

function put(path: string, text: string): void {
  const fresh = `${path}.new`;
  fs.rmSync(fresh, { force: true });
  fs.writeFileSync(fresh, text, { mode: 0o600, flag: "wx" });
  fs.renameSync(fresh, path);
}

/** The token is in here, and not among curl's arguments, which everybody on the machine can read. */
function curlConfig({ socket, token }: Whereabouts): string {
  const quoted = (text: string) => `"${text.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`;
  return `# Of cotenant's daemon, for hooks: how curl reaches it.
unix-socket = ${quoted(socket)}
header = "Authorization: Bearer ${token}"
header = "Content-Type: ${SHELL_TYPE}"
header = "Expect:"
data-binary = "@-"
silent
fail
http1.1
noproxy = "*"
connect-timeout = 2
speed-limit = 1
write-out = "${SEPARATOR}%{time_total}"
`;
}

/**
 * Read by the hook lines of 'agent install --via daemon', which have `cotenant_hook` say harness, event, how long the harness
 * waits, and program. Answers and ends; or runs the program with what it has read, and with a shorter deadline if time has passed;
 * or returns without having read anything. A daemon that sends nothing for two seconds is left; curl takes up to eight to notice.
 * The program takes the hook's place with what it has read as its input. For a here-document some shells need a file: where there is
 * no room for one, the program is run behind a pipe. None of it may get into the environment, as it would where everything is
 * exported: a program is not run with too much of that.
 */
function script(place: HookPlace, { pid, lockFd, lock }: Whereabouts): string {
  return `# For hooks that 'cotenant agent install --via daemon' wrote; by the daemon, for as long as it runs.
if [ -z "\${COTENANT_NO_DAEMON-}" ] &&
  ${isThere(lock, pid, lockFd)}[ ! -t 0 ] && command -v curl >/dev/null 2>&1 && cd -P . 2>/dev/null
then
  case $PWD in
  *"
"* | *"\r"*) ;;
  *)
    set +a
    unset cotenant_in cotenant_out cotenant_rest cotenant_said cotenant_err
    cotenant_in=$(cat && echo .)
    cotenant_in=\${cotenant_in%.}
    cotenant_harness=\${cotenant_hook%% *} cotenant_hook=\${cotenant_hook#* }
    cotenant_event=\${cotenant_hook%% *} cotenant_hook=\${cotenant_hook#* }
    cotenant_limit=\${cotenant_hook%% *} cotenant_hook=\${cotenant_hook#* }
    cotenant_silence=2 cotenant_kept=$((cotenant_limit / 10))
    [ "$cotenant_limit" -ge 6 ] || cotenant_silence=1
    [ "$cotenant_kept" -ge 1 ] || cotenant_kept=1
    [ "$cotenant_kept" -le 3 ] || cotenant_kept=3
    if cotenant_out=$({ export -p && printf '${SEPARATOR}%s' "$cotenant_in"; } |
      curl -q -K ${lineWord(place.curl)} -m $((cotenant_limit - cotenant_kept)) -y $cotenant_silence \\
        -H "Cotenant-Process: $$ $PPID" -H "Cotenant-Cwd: [$PWD]" -H "Cotenant-Limit: $cotenant_limit" \\
        -H "Cotenant-Program: [$cotenant_hook]" \\
        "http://${SOCKET_HOST}/guard/$cotenant_harness/$cotenant_event" 2>/dev/null)
    then
      cotenant_rest=\${cotenant_out#*${SEPARATOR}}
      cotenant_status=\${cotenant_rest%%${SEPARATOR}*} cotenant_rest=\${cotenant_rest#*${SEPARATOR}}
      cotenant_said=\${cotenant_rest%%${SEPARATOR}*} cotenant_rest=\${cotenant_rest#*${SEPARATOR}}
      cotenant_err=\${cotenant_rest%%${SEPARATOR}*} cotenant_rest=\${cotenant_rest#*${SEPARATOR}}
      case $cotenant_status/\${cotenant_rest%%${SEPARATOR}*} in
      0/${WHOLE} | 2/${WHOLE})
        printf %s "$cotenant_said"
        [ -z "$cotenant_err" ] || printf %s "$cotenant_err" >&2
        exit "$cotenant_status"
        ;;
      esac
    fi
    cotenant_took=\${cotenant_out##*${SEPARATOR}}
    cotenant_took=\${cotenant_took%%[!0-9]*}
    set --
    if [ "\${cotenant_took:-0}" -gt 0 ]
    then
      cotenant_kept=$((cotenant_limit / 4))
      [ "$cotenant_kept" -le 5 ] || cotenant_kept=5
      cotenant_left=$((cotenant_limit - cotenant_kept - cotenant_took))
      [ "$cotenant_left" -ge 1 ] || cotenant_left=1
      set -- --deadline "$cotenant_left"
    fi
    if { command exec 0<<COTENANT_INPUT
$cotenant_in
COTENANT_INPUT
    } 2>/dev/null
    then cotenant_program "$@"
    fi
    printf %s "$cotenant_in" | cotenant_program "$@"
    exit
    ;;
  esac
fi
`;
}

/**
 * That process has our lock open under that number, as whoever asks sees processes: so it is us, alive, and pids mean the same
 * to both sides. After a kill nobody loses time, and nobody asks out of another container. One that is stopped is not asked.
 */
function isThere(lock: string, pid: number, lockFd: number): string {
  if (process.platform !== "linux") return "";
  return `[ /proc/${pid}/fd/${lockFd} -ef ${lineWord(lock)} ] &&
  read -r cotenant_stat 2>/dev/null </proc/${pid}/stat &&
  case \${cotenant_stat##*") "} in [TtZXx]*) false ;; esac &&
  `;
}
