import { type Surroundings, Workspace } from "../coordinator/workspace";
import { engineInFront, followLogInFront, missedDaemonIn, watcherInFront } from "../daemon/in-front";
import { CotenantError, fileFailure } from "../errors/cotenant-error";
import { callingProcess } from "../features/guard/calling-process";
import { hooksWord, wordText } from "../features/hooks/installation/upkeep";
import { blockerLines } from "./blocker-text";
import { COMMANDS } from "./commands";
import type { Command, Context, Output, Parsed, Tell } from "./grammar/command";
import { endOfFlags, parseCommandLine } from "./grammar/parse";
import { findCommand } from "./lookup";
import type { Terminal } from "./terminal/terminal";

/** Where a command line is run: the machine, and whoever reads what it says. */
export interface Stage {
  readonly terminal: Terminal;
  /** Looked at only by a command that needs to know where it is: the current directory may be gone. */
  surroundings(): Surroundings;
}

/** Runs one command line and answers the exit status. The only place that turns errors into words. */
export async function runCommandLine(args: readonly string[], stage: Stage): Promise<number> {
  const { terminal } = stage;
  const json = wantsJson(args);
  const tell: Tell = (text, data = { help: text }) =>
    terminal.out(json ? `${JSON.stringify({ ok: true, data })}\n` : text);
  try {
    const found = findCommand(args);
    if (found === null) {
      const { answerWithoutCommand } = await import("./help");
      return await answerWithoutCommand(args, tell);
    }
    const command = await COMMANDS[found.name]!.load();
    const rest = command.prepare?.(found.rest) ?? found.rest;
    const parsed = parseCommandLine(found.name, rest, command.flags, command.words);
    if (parsed.has("help")) {
      const { commandHelp } = await import("./help");
      tell(commandHelp(command, found.name));
      return 0;
    }
    return await run(found.name, command, parsed, stage);
  } catch (error) {
    return fail(error, json, terminal);
  }
}

/** For an error of a promise that nobody waited for: the same words as for any other, and the exit status. */
export function failAside(error: unknown, args: readonly string[], terminal: Terminal): number {
  return fail(error, wantsJson(args), terminal);
}

function wantsJson(args: readonly string[]): boolean {
  return args.slice(0, endOfFlags(args)).includes("--json");
}

/** Managers of hooks write theirs anew: whoever comes by puts ours back, and says so whatever comes of the command. */
async function withHooks(workspace: Workspace): Promise<Workspace> {
  const word = await hooksWord(workspace);
  if (word !== null) workspace.warnings.push(wordText(word));
  return workspace;
}

async function run(name: string, command: Command, parsed: Parsed, stage: Stage): Promise<number> {
  const { terminal } = stage;
  let opened: Promise<Workspace> | undefined;
  const context: Context = {
    terminal,
    json: parsed.has("json"),
    quiet: parsed.has("quiet"),
    program: process.argv[1] ?? "cotenant",
    workspace: () => {
      opened ??= Workspace.open(stage.surroundings(), {
        agentId: parsed.text("agent-id"),
        session: parsed.text("session"),
        allowNetworkFs: parsed.has("allow-network-fs"),
        ...(command.mendsConfig === true ? { despiteConfig: "mend" } : {}),
        ...(command.enforcesConfig === true ? { despiteConfig: "enforce" } : {}),
        doing: name,
        engine: (workspace) => engineInFront(workspace, process.argv[1] ?? null),
        watcher: watcherInFront,
        missedDaemon: missedDaemonIn,
        followLog: followLogInFront,
        holder: callingProcess,
      }).then(command.leavesHooks === true ? (workspace) => workspace : withHooks);
      return opened;
    },
    surroundings: () => stage.surroundings(),
    note: (line) => terminal.err(`${line}\n`),
  };
  const output = await command.run(context, parsed).catch(async (error: unknown) => {
    const workspace = await opened?.catch(() => undefined);
    const { withWay } = await import("./hints");
    if (workspace === undefined) throw withWay(error, command);
    await sayOfHooks(terminal, workspace);
    const caller = await workspace.agent().catch(() => null);
    throw withWay(await explainedIn(error, workspace), command, caller);
  });
  // A command that went on without one, as issues do outside Git, has dealt with the failure.
  const workspace = await opened?.catch(() => undefined);
  if (workspace?.isWriting === true) await tidyUp(workspace);
  const warnings = [
    ...new Set(workspace?.warnings ?? []),
    ...(await reminders(workspace, command, parsed, stage)),
  ];
  print(output, warnings, context);
  return output.exit ?? 0;
}

/** After a command that has done what it should: nothing that fails from here on makes a failure of it. */
async function tidyUp(workspace: Workspace): Promise<void> {
  try {
    if (!(await workspace.hasStore())) return;
    // The command may have removed the worktree it was called in.
    if (await workspace.isThere()) await workspace.worktree("write");
    await settleLeftOpen(workspace);
  } catch (error) {
    workspace.warnings.push(`it is done, but afterwards: ${explained(error).message}`);
  }
}

async function explainedIn(error: unknown, workspace: Workspace): Promise<unknown> {
  const isFile = !(error instanceof CotenantError) && (error as NodeJS.ErrnoException)?.syscall !== undefined;
  const { explained: explainedBy } = await import("../coordinator/explained");
  return explainedBy(isFile ? explained(error) : error, workspace);
}

async function sayOfHooks(terminal: Terminal, workspace: Workspace): Promise<void> {
  const word = await hooksWord(workspace);
  if (word !== null && workspace.warnings.includes(wordText(word)))
    terminal.err(`cotenant: warning: ${wordText(word)}\n`);
}

function print(output: Output, warnings: readonly string[], context: Context): void {
  const { terminal } = context;
  for (const warning of warnings) terminal.err(`cotenant: warning: ${warning}\n`);
  if (output.isStreamed === true) return;
  if (context.json) {
    const document = { ok: true, data: output.data, ...(warnings.length === 0 ? {} : { warnings }) };
    terminal.out(`${JSON.stringify(document)}\n`);
  } else if (output.text !== "") {
    terminal.out(output.text.endsWith("\n") ? output.text : `${output.text}\n`);
  }
}

/**
 * PROTOCOL 18: the next writer settles what a killed publish has left open. Mostly nothing is, which one look at a directory
 * tells; where something is, it never is the reason why another command fails.
 */
async function settleLeftOpen(workspace: Workspace): Promise<void> {
  const { platform, layout } = workspace.store;
  try {
    const open = await platform.files.readDirectory(`${layout.index}/facts/publish`);
    if (open === null || open.length === 0) return;
    const { settleIntents } = await import("../features/publish/settlement");
    for (const { intent, fate } of await settleIntents(workspace, await workspace.session("write")))
      workspace.warnings.push(`a publish of ${intent.agentId} to ${intent.ref} was cut off: ${fate}`);
  } catch {
    // It stays open for the next one.
  }
}

/** Leases of the caller's that are about to run out are worth a word, whatever the command was. */
async function reminders(
  opened: Workspace | undefined,
  command: Command,
  parsed: Parsed,
  stage: Stage,
): Promise<string[]> {
  if (command.remindsOfExpiry === false) return [];
  try {
    const who = { agentId: parsed.text("agent-id"), session: parsed.text("session") };
    // A command that needs no repository may stand in one all the same.
    const workspace =
      opened ?? (await Workspace.open(stage.surroundings(), { ...who, despiteConfig: "mend" }));
    const { expiryWarnings } = await import("./expiry");
    return await expiryWarnings(workspace);
  } catch {
    // A reminder is a courtesy: without an identity, or with a damaged store, there is nothing to say here.
    return [];
  }
}

function fail(error: unknown, json: boolean, terminal: Terminal): number {
  const known = error instanceof CotenantError ? error : explained(error);
  if (json) terminal.out(`${JSON.stringify({ ok: false, error: known.toJSON() })}\n`);
  else {
    const lines = [
      `cotenant: ${known.message} (${known.code})`,
      ...blockerLines(known),
      `next: ${known.hint}`,
    ];
    terminal.err(`${lines.join("\n  ")}\n`);
  }
  if (process.env["COTENANT_DEBUG"]) terminal.err(`${(error as Error)?.stack ?? error}\n`);
  return known.exit;
}

/** Every layer explains its own failures; what slips through still names the cause and no bug of ours. */
function explained(error: unknown): CotenantError {
  const { code, syscall, path } = (error ?? {}) as NodeJS.ErrnoException;
  if (syscall === "uv_cwd") {
    return new CotenantError("E_NOT_A_REPO", "the current directory is gone", {
      hint: "change into a directory that exists",
      cause: error,
    });
  }
  if (typeof code === "string" && syscall !== undefined)
    return fileFailure(error, "this command", path ?? syscall);
  const message = error instanceof Error ? error.message : String(error);
  return new CotenantError("E_INTERNAL", message, { cause: error });
}
