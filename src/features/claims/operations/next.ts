import type { Acquired } from "../../../coordinator/session";
import type { Workspace } from "../../../coordinator/workspace";
import { CotenantError, notFoundError } from "../../../errors/cotenant-error";
import { byKey } from "../../../kernel/commands";
import type { Ulid } from "../../../kernel/ids";
import type { IssueRow } from "../../issues/board";
import { keyOfIssue } from "../../issues/claim-refs";
import { deskIn, type RepositoryDesk } from "../../issues/desk";
import { type Taken, takeNext } from "../../issues/next";
import {
  type AvailableRequest,
  heldFiles,
  type Setting,
  settingAt,
  whereToLook,
} from "../../issues/operations/query";
import { filterOf, queryAvailable } from "../../issues/query";
import { tokenSeen } from "../../issues/stamps";
import { hearOfClaims } from "../../ledger/workers";
import {
  checkedTerms,
  type LeaseTerms,
  tellLedger,
  waitMs,
  warnOfTwin,
  withLedger,
} from "../../locks/operations";
import type { AbandonedWork } from "../../snapshots/abandoned-work";

/** `wait`: until something is available. */
export interface NextRequest extends LeaseTerms, Omit<AvailableRequest, "limit"> {}

export interface NextClaimed extends Acquired {
  /** As it counts now: in progress, and the caller's. */
  readonly issue: IssueRow;
  readonly abandoned: AbandonedWork | null;
}

/** How often to look again while waiting; looking takes neither a lock nor much time. */
const LOOK_MS = 1_000;

/** Claims the first of what is available. Many may do so at once: each gets another one. */
export async function claimNext(workspace: Workspace, request: NextRequest): Promise<NextClaimed> {
  const filter = filterOf(request);
  const terms = await checkedTerms(workspace, request, [], "claim");
  const { signal } = request;
  const session = await workspace.session("write");
  const desk = await deskIn(workspace);
  const { reader } = desk;
  // As of the look that found it: the claim itself ends what was there before.
  let setting: Setting = await settingAt(desk);
  const holder = await workspace.holder();
  const held = (await session.mine()).map(({ lease }) => lease);
  const take = async () => {
    await hearOfClaims(workspace);
    return takeNext({
      reader,
      look: async () => {
        setting = await settingAt(desk);
        return queryAvailable(setting, filter, await heldFiles(desk, request));
      },
      claims: async () => (await settingAt(desk)).claims,
      acquire: async (id: Ulid) => {
        const aboveToken = tokenSeen([(await reader.get(id)).issue]);
        return session.acquire([{ key: keyOfIssue(id), reach: "repository" }], {
          ...{ ...terms, holder, steal: false, aboveToken },
          ...(signal === undefined ? {} : { interrupted: signal }),
        });
      },
      release: async ({ leases }) => {
        await session.release(leases.map(({ key }) => byKey(key)));
      },
    });
  };
  const taken = await waitFor(take, desk, request);
  if (taken === null) throw await nothingLeft(desk, request);
  const { issue } = taken;
  tellLedger(workspace, taken.grant);
  await warnOfTwin(workspace, holder, held, "LEASES");
  const grant = withLedger(workspace, taken.grant);
  const { agentId } = session.actor;
  return {
    ...grant,
    fresh: grant.replayed ? [] : grant.leases,
    issue: { ...issue, state: "in_progress", assignee: agentId },
    abandoned: (await setting.abandonedAmong([issue])).get(issue.id) ?? null,
  };
}

async function waitFor(
  take: () => Promise<Taken | null>,
  { workspace }: RepositoryDesk,
  { wait, signal }: NextRequest,
): Promise<Taken | null> {
  const { clock, timers } = workspace.surroundings.platform;
  const until = clock.monotonicMs() + waitMs(wait);
  let hasSaid = false;
  for (;;) {
    const taken = await take();
    if (taken !== null || wait === undefined) return taken;
    const left = until - clock.monotonicMs();
    if (left <= 0) return null;
    if (!hasSaid) wait.onWait?.({ ahead: 0, message: "nothing is available yet" });
    hasSaid = true;
    const sleep = timers.sleep(Math.min(left, LOOK_MS));
    signal?.addEventListener("abort", sleep.wake, { once: true });
    await sleep.done;
    signal?.removeEventListener("abort", sleep.wake);
    if (signal?.aborted === true)
      throw new CotenantError("E_INTERRUPTED", "interrupted before anything became available");
  }
}

async function nothingLeft(desk: RepositoryDesk, request: NextRequest): Promise<CotenantError> {
  const hint = await whereToLook(desk, request);
  const { states: _, limit: __, ...asked } = filterOf(request);
  const data = { filter: asked };
  if (request.wait === undefined)
    return notFoundError("there is nothing that could be claimed now", `${hint}; --wait waits for it`, data);
  const secs = waitMs(request.wait) / 1000;
  return new CotenantError("E_WAIT_TIMEOUT", `nothing became available within ${secs} s`, { hint, data });
}
