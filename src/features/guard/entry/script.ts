import type { Context, Output, Parsed } from "../../../cli/grammar/command";
import type { Acquired } from "../../../coordinator/session";
import { CotenantError } from "../../../errors/cotenant-error";
import { count } from "../../../kernel/printing";
import { requestId } from "../../locks/commands/holding";
import type { Alarm } from "../alarm";
import { checkTargets } from "../check";
import { locate } from "../target";
import { namedAsHolder, parentAsHolder, type Who } from "../who";
import { harnessPid } from "./flags";
import { worldOf } from "./world-of";

const WHO_WAITS = "take other work; 'cotenant guard status' shows who holds it and who waits";

/** A check for whoever is no harness: the caller's own identity, and errors as everywhere else. */
export async function checkForScript(
  context: Context,
  paths: readonly string[],
  alarm: Alarm,
  parsed: Parsed,
): Promise<Output> {
  const workspace = await context.workspace();
  const pid = harnessPid(parsed);
  const { agentId, sessionId } = await workspace.agent();
  const world = { ...worldOf(workspace.surroundings, pid), isAsked: true };
  const { processes } = world.platform;
  const parent = pid ?? world.parentPid;
  const holder = await (pid === null ? parentAsHolder : namedAsHolder)(processes, parent);
  const who: Who = { agentId, sessionId, mainAgentId: agentId, holder };
  // A name that Git would refuse is an error here, not something to be passed over.
  for (const path of paths) await workspace.path(path);
  const groups = await locate(
    world,
    world.cwd,
    paths.map((path) => ({ path, mode: "take" })),
  );
  const report = {
    harness: "claude",
    moment: "before",
    event: "PreToolUse",
    sessionId,
    subagent: null,
    cwd: world.cwd,
    tool: null,
    input: null,
    toolUseId: null,
    isRecoverable: false,
    isBorrowed: false,
    isShowingWaits: false,
  } as const;
  const grants: Acquired[] = [];
  const checking = {
    world,
    who,
    report,
    alarm,
    requestId: requestId(workspace, parsed),
    onGrant: (grant: Acquired) => grants.push(grant),
  };
  const verdict = await alarm.watch(() => checkTargets(checking, groups));
  if (!verdict.isAllowed) {
    const [first = "", ...words] = verdict.reason.replace(/^cotenant: /, "").split("\n");
    const retry = words.filter((line) => line.startsWith("retry_at: "));
    throw new CotenantError(verdict.code, [first, ...retry].join(" "), {
      ...(verdict.code === "E_LOCK_CONFLICT" ? { hint: WHO_WAITS } : {}),
      data: { ...verdict.data, words },
    });
  }
  const held = groups.flatMap(({ targets }) => targets.map(({ path }) => path));
  if (verdict.tell !== null) context.note(verdict.tell);
  return {
    data: {
      files: held,
      remarks: verdict.tell,
      changed: grants.some(({ changed }) => changed),
      replayed: grants.some(({ replayed }) => replayed),
    },
    text: `${count(held.length, "file")} held while process ${parent} runs`,
  };
}
