import type { Command, Context, Parsed } from "../../../cli/grammar/command";
import { interruptibly } from "../../../cli/terminal/interrupts";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError } from "../../../errors/cotenant-error";
import { byKey } from "../../../kernel/commands";
import { printable, type Ulid } from "../../../kernel/ids";
import { callingProcess } from "../../guard/calling-process";
import { keyOfIssue } from "../../issues/claim-refs";
import {
  FILTER_FLAGS,
  filterFrom,
  heldFiles,
  rowJson,
  settingAt,
  whereToLook,
} from "../../issues/commands/querying";
import { issuesIn } from "../../issues/desk";
import { type Taken, takeNext } from "../../issues/next";
import { type Filter, queryAvailable } from "../../issues/query";
import { tokenSeen } from "../../issues/stamps";
import { tellSay, withLedger } from "../../ledger/commands/ledger";
import { hearOfClaims } from "../../ledger/workers";
import {
  ACQUIRE_FLAGS,
  grantOutput,
  readOptions,
  takesLong,
  tellOfTwin,
  waitSecs,
} from "../../locks/commands/acquiring";
import { takeOverLines } from "./left-work";

const { limit: _limit, ...NARROWING } = FILTER_FLAGS;
/** How often to look again while waiting; looking takes neither a lock nor much time. */
const LOOK_MS = 1_000;

export const command: Command = {
  usage: "claim next [--priority <p>]… [--type <type>]… [--label <ns:value>]… [--ttl <secs>] [--wait]",
  about:
    "Claims the first of what 'query available' lists. Many may do so at once: each gets another one. Exits with 4\nwhen there is none.",
  flags: {
    ...ACQUIRE_FLAGS,
    ...NARROWING,
    "free-files": { meaning: "leave out those whose declared files somebody else holds" },
    wait: { meaning: "wait until something is available" },
  },
  examples: ["cotenant claim next", "cotenant claim next --type bug --ttl 1800  # exits 4"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const filter = filterFrom(parsed);
    const workspace = await context.workspace();
    const options = await readOptions(parsed, workspace, { keys: [], noun: "claim" });
    const timeoutMs = waitSecs(parsed) * 1000;
    const session = await workspace.session("write");
    const reader = await issuesIn(workspace);
    const desk = { reader, workspace };
    // As of the look that found it: the claim itself ends what was there before.
    let setting = await settingAt(desk);
    const holder = await callingProcess(workspace.surroundings.platform.processes);
    const filesHeld = async () => (parsed.has("free-files") ? heldFiles(desk) : null);
    const held = (await session.mine()).map(({ lease }) => lease);
    const take = async (signal: AbortSignal | undefined) => {
      await hearOfClaims(workspace);
      return takeNext({
        reader,
        look: async () => {
          setting = await settingAt(desk);
          return queryAvailable(setting, filter, await filesHeld());
        },
        claims: async () => (await settingAt(desk)).claims,
        acquire: async (id: Ulid) => {
          const aboveToken = tokenSeen([(await reader.get(id)).issue]);
          const keys = [{ key: keyOfIssue(id), reach: "repository" as const }];
          return session.acquire(keys, {
            ...options,
            holder,
            steal: false,
            aboveToken,
            ...(signal === undefined ? {} : { interrupted: signal }),
          });
        },
        release: async ({ leases }) => {
          await session.release(leases.map(({ key }) => byKey(key)));
        },
      });
    };
    const taken = await interruptibly(context, takesLong(workspace, parsed), (signal) =>
      waited(context, parsed, workspace, timeoutMs, signal, () => take(signal)),
    );
    if (taken === null) {
      const look = await whereToLook(desk, setting, filter, await filesHeld());
      throw nothing(filter, look, parsed.has("wait") ? timeoutMs : null);
    }
    tellSay(workspace, taken.grant.ledger);
    await tellOfTwin(workspace, holder, held, "LEASES");
    const output = grantOutput(
      context,
      parsed,
      session,
      { ...withLedger(workspace, taken.grant), fresh: taken.grant.replayed ? [] : taken.grant.leases },
      "claim",
    );
    const { agentId } = session.actor;
    const { shortId, id, title } = taken.issue;
    const left = await setting.leftAmong([taken.issue]);
    // It is in progress, and theirs, by the claim that they have just been given.
    const now = { ...taken.issue, state: "in_progress", assignee: agentId } as const;
    const who = { shortId, agentId, workspace };
    const lines = [
      `${shortId}: ${printable(title, 300)}`,
      output.text,
      ...takeOverLines(left.get(id) ?? null, who),
    ];
    return {
      data: { issue: rowJson(now, agentId, left), ...output.data },
      text: context.quiet ? [shortId, output.text].filter(Boolean).join("\n") : lines.join("\n"),
    };
  },
};

async function waited(
  context: Context,
  parsed: Parsed,
  { surroundings }: Workspace,
  timeoutMs: number,
  signal: AbortSignal | undefined,
  take: () => Promise<Taken | null>,
): Promise<Taken | null> {
  const { clock, timers } = surroundings.platform;
  const until = clock.monotonicMs() + timeoutMs;
  let hasSaid = false;
  for (;;) {
    const taken = await take();
    if (taken !== null || !parsed.has("wait")) return taken;
    const left = until - clock.monotonicMs();
    if (left <= 0) return null;
    if (!hasSaid && !context.quiet) context.note("nothing is available yet: waiting");
    hasSaid = true;
    const sleep = timers.sleep(Math.min(left, LOOK_MS));
    signal?.addEventListener("abort", sleep.wake, { once: true });
    await sleep.done;
    signal?.removeEventListener("abort", sleep.wake);
    if (signal?.aborted === true)
      throw new CotenantError("E_INTERRUPTED", "interrupted before anything became available");
  }
}

function nothing(filter: Filter, hint: string, waitedMs: number | null): CotenantError {
  const { states: _, limit: __, ...asked } = filter;
  if (waitedMs !== null)
    return new CotenantError("E_WAIT_TIMEOUT", `nothing became available within ${waitedMs / 1000} s`, {
      hint,
      data: { filter: asked },
    });
  return new CotenantError("E_NOT_FOUND", "there is nothing that could be claimed now", {
    hint: `${hint}; --wait waits for it`,
    data: { filter: asked },
  });
}
