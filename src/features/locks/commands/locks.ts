import type { Command } from "../../../cli/grammar/command";
import { leaseJson, leaseTable, statusJson } from "../../../cli/terminal/render";
import type { Cover } from "../../../identity/patterns";
import { printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { type LockStatus, lock } from "../operations";
import {
  ACQUIRE_FLAGS,
  HOLDER_FLAGS,
  leasesFrom,
  NO_GLOB,
  REASON_FLAG,
  RENEW_FLAGS,
  readBareTargetFlags,
  releaseFrom,
  renewFrom,
  TARGET_FLAGS,
  targetsFrom,
} from "./flags";
import { grantOutput, releaseOutput, renewOutput, ticketJson, ticketKeys, withTerms } from "./output";

const ANY_WORDS = { min: 0, max: Number.POSITIVE_INFINITY };

export const acquire: Command = {
  positional: "<file>…",
  about:
    "Leases files, directories, resources or refs: all of them or none. A directory excludes everything in it\nand every directory around it. Asking again for what you hold returns the same lease. A pattern is refused unless\na file has that very name; with --glob, the smallest directory that covers all that match is leased, with everything in\nit, also files that do not match and files that are still to be made.",
  flags: {
    ...TARGET_FLAGS,
    glob: {
      meaning:
        "every word is a pattern of Git's (*, **, [abc]): lease the directory that covers what matches",
    },
    ...ACQUIRE_FLAGS,
  },
  examples: [
    "cotenant lock acquire src/app.ts src/app.test.ts",
    "cotenant lock acquire --dir src/api --ttl 1800",
    "cotenant lock acquire --glob 'src/api/**/*.ts'",
    "cotenant lock acquire --resource staging-database --wait --timeout 120",
  ],
  words: ANY_WORDS,
  completes: ["path"],
  prepare: readBareTargetFlags,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const granted = await withTerms(context, parsed, (terms) =>
      lock.acquire(workspace, { ...terms, ...targetsFrom(parsed) }),
    );
    const output = grantOutput(context, parsed, granted, "lock");
    const { covers } = granted;
    if (!parsed.has("glob")) return output;
    const text = context.quiet ? output.text : [output.text, ...covers.flatMap(coverLines)].join("\n");
    return { ...output, text, data: { ...output.data, covers } };
  },
};

const MOST_SHOWN = 10;

function coverLines({ pattern, files, directory }: Cover): string[] {
  const shown = files.slice(0, MOST_SHOWN).map((file) => `    ${printable(file, 400)}`);
  const more = files.length - shown.length;
  return [
    `  ${printable(pattern, 200)} matches ${count(files.length, "file")} now; all of ${printable(directory, 400)}/ is leased:`,
    ...shown,
    ...(more > 0 ? [`    … and ${more} more`] : []),
  ];
}

export const steal: Command = {
  positional: "<file>…",
  about:
    "Ends whatever stands in the way and takes the lock, in one step. A live lock only by those whom\npolicy.evict allows (people and admins by default); what has run out, by anybody.",
  flags: { ...TARGET_FLAGS, ...ACQUIRE_FLAGS, reason: { ...ACQUIRE_FLAGS["reason"]!, isRequired: true } },
  examples: ['cotenant lock steal src/app.ts --reason "its agent hangs" --agent-id human:ada'],
  isForPeople: true,
  words: ANY_WORDS,
  completes: ["path"],
  prepare: readBareTargetFlags,
  async run(context, parsed) {
    const workspace = await context.workspace();
    const granted = await withTerms(context, parsed, (terms) =>
      lock.steal(workspace, { ...terms, ...targetsFrom(parsed) }),
    );
    return grantOutput(context, parsed, granted, "lock");
  },
};

/** Of commands about locks that somebody holds. */
const HELD = {
  positional: "<file|lease>…",
  words: ANY_WORDS,
  completes: ["lease"],
  prepare: readBareTargetFlags,
} as const;

export const renew: Command = {
  ...HELD,
  about: "Extends locks you hold: all of them or none.",
  flags: { ...TARGET_FLAGS, ...RENEW_FLAGS, ...HOLDER_FLAGS, ...NO_GLOB },
  examples: ["cotenant lock renew src/app.ts", "cotenant lock renew --dir src/api --ttl 1800"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const request = { ...renewFrom(parsed, workspace), ...leasesFrom(parsed) };
    return renewOutput(context, await lock.renew(workspace, request));
  },
};

export const release: Command = {
  ...HELD,
  about: "Gives locks back: all of them or none. They are free at once.",
  flags: { ...TARGET_FLAGS, ...REASON_FLAG, ...HOLDER_FLAGS, ...NO_GLOB },
  examples: ["cotenant lock release src/app.ts", "cotenant lock release --dir src/api"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const request = { ...releaseFrom(parsed, workspace), ...leasesFrom(parsed) };
    return releaseOutput(context, await lock.release(workspace, request));
  },
};

export const status: Command = {
  about: "Shows who holds which files, directories, resources and refs, who waits, and what looks abandoned.",
  flags: {
    path: { value: "<prefix>", completes: "path", meaning: "only this file or directory, and what is in it" },
    all: { meaning: "also those that have lapsed and that nobody has taken since" },
  },
  examples: ["cotenant lock status", "cotenant lock status --path src/api --json"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const workspace = await context.workspace();
    const found = await lock.status(workspace, { path: parsed.text("path"), all: parsed.has("all") });
    const { leases, waiters, me } = found;
    const hints = hintsOf(found);
    return {
      // Only one of the two is asked for, and there may be many leases.
      get data() {
        return { leases: leases.map(statusJson), waiters: waiters.map(ticketJson), hints };
      },
      get text() {
        return [
          leases.length === 0 ? "no locks" : leaseTable(context.terminal, leases, me),
          ...waiters.map(
            (ticket) => `  waiting #${ticket.number}: ${ticket.agentId} for ${ticketKeys(ticket)}`,
          ),
          ...hints,
        ].join("\n");
      },
    };
  },
};

function hintsOf({ leases, lapsed }: LockStatus): string[] {
  const stale = leases.filter(({ stale, standing }) => stale && standing === "valid");
  return [
    ...(lapsed === 0
      ? []
      : [
          `${count(lapsed, "lock")} lapsed and free to take; 'cotenant lock gc' logs ${lapsed === 1 ? "its" : "their"} end`,
        ]),
    ...stale.map(
      ({ lease }) =>
        `${printable(lease.key)} has not been heard of since ${new Date(lease.lastBeat.wallMs).toISOString()}: ask ${lease.agentId}`,
    ),
  ];
}

export const gc: Command = {
  about: "Logs the end of leases that have lapsed. Nothing depends on it: a lapsed lease blocks nobody.",
  flags: {},
  examples: ["cotenant lock gc"],
  words: { min: 0, max: 0 },
  async run(context) {
    const { leases } = await lock.gc(await context.workspace());
    const text =
      leases.length === 0 ? "nothing has lapsed" : `logged the end of ${count(leases.length, "lease")}`;
    return { data: { leases: leases.map((lease) => leaseJson(lease)) }, text: context.quiet ? "" : text };
  },
};
