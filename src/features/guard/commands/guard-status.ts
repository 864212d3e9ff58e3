import type { Command } from "../../../cli/grammar/command";
import { columns, leaseTable, paint, statusJson } from "../../../cli/terminal/render";
import { printable } from "../../../kernel/ids";
import { duration } from "../../../kernel/printing";
import { isoOf } from "../contention";
import { guardStatus, type SeenContention, type SeenViolation } from "../operations";
import { agentsOf, subject } from "../words";

export const command: Command = {
  about:
    "Shows which files the guard holds for whom, who waits for one and until when, who is blocked, which shell commands\nchanged what others hold, and where the guard itself could not decide.",
  flags: {},
  examples: ["cotenant guard status", "cotenant guard status --json"],
  words: { min: 0, max: 0 },
  async run(context) {
    const { terminal } = context;
    const workspace = await context.workspace();
    const { leases, contentions, violations, failures } = await guardStatus(workspace);
    const me = await workspace.actorOrNull();
    const rows = contentions.map(({ contention, isFree, isOver, retryInMs }) => [
      isFree ? printable(contention.path, 60) : subject(contention),
      contention.agentId,
      isFree ? "nobody" : agentsOf([contention]),
      isFree ? "free now" : isOver ? `${contention.state}, ended` : contention.state,
      contention.state !== "waiting" || isFree
        ? "-"
        : retryInMs > 0
          ? `in ${duration(retryInMs)}`
          : "due now",
    ]);
    const text = [
      leases.length === 0 ? "the guard holds nothing" : leaseTable(terminal, leases, me),
      ...(rows.length === 0
        ? []
        : [columns(terminal, ["FILE", "WANTED BY", "HELD BY", "STATE", "RETRY"], rows)]),
      ...violations.flatMap(({ id, violation: { path, agentId, owner, at } }) => [
        paint(
          terminal,
          "yellow",
          `! ${printable(path, 200)} was changed by a command of ${agentId} under the lease of ${owner}, ${at}`,
        ),
        `  next: once somebody has looked at it: cotenant guard settle ${id}`,
      ]),
      ...failures.map(({ at, why, answer }) =>
        paint(terminal, "yellow", `! could not decide at ${at}: ${printable(why, 200)} (${answer})`),
      ),
    ].join("\n");
    return {
      data: {
        leases: leases.map(statusJson),
        contentions: contentions.map(contentionJson),
        violations: violations.map(violationJson),
        failures,
      },
      text,
    };
  },
};

function contentionJson({ contention, isFree, isOver, retryInMs }: SeenContention): Record<string, unknown> {
  return {
    path: contention.path,
    key: contention.key,
    agent_id: contention.agentId,
    session_id: contention.sessionId,
    worktree_id: contention.worktreeId,
    owner: isFree ? null : contention.owner.agentId,
    state: contention.state,
    free: isFree,
    ended: isOver,
    denied_at: isoOf(contention.deniedAt),
    retry_at: isoOf(contention.retryAt),
    retry_in_secs: Math.ceil(retryInMs / 1000),
  };
}

export function violationJson({ id, violation }: SeenViolation): Record<string, unknown> {
  const { path, agentId, owner, leaseId, at, command } = violation;
  return { id, path, agent_id: agentId, owner, lease_id: leaseId, at, command };
}
