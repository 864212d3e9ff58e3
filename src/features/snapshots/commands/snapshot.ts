import type { Command } from "../../../cli/grammar/command";
import { endOfFlags } from "../../../cli/grammar/parse";
import { CotenantError, orThrow } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { checkText } from "../../../kernel/policy";
import { count } from "../../../kernel/printing";
import { HOLDER_FLAGS, proof } from "../../locks/commands/holding";
import { CONSISTENCY_LEVELS, type Consistency, checkTags } from "../descriptor";
import { takeSnapshot } from "../taking";
import { bytesText, darkroom, snapshotJson, warningWords } from "./snapshots";

export const command: Command = {
  usage: "snapshot [-m <text>] [--tag <name>]… [--consistency quiesced|best_effort] [--ignored]",
  about:
    "Keeps this worktree as it is: every file that Git tracks or would add, with --ignored the rest too, with\npermissions, links and empty directories, the index and the commit. It goes to Git's objects under\nrefs/cotenant/snapshots/; your branches, index and stash are not touched. Takes a free writer lock meanwhile.\n'cotenant history' shows the snapshots that there are, 'cotenant restore' brings one back.",
  flags: {
    ...HOLDER_FLAGS,
    message: { value: "<text>", meaning: "what it is, for whoever looks (also -m)" },
    tag: { value: "<name>", many: true, meaning: "a name to find it by; tagged ones are never cleared away" },
    consistency: {
      value: "<level>",
      choices: CONSISTENCY_LEVELS,
      meaning: "quiesced: fails if anything changes meanwhile (default); best_effort: says so instead",
    },
    ignored: { meaning: "also what Git ignores (else as snapshot.ignored says)" },
    "fencing-token": { value: "<n>", meaning: "fail unless this is the writer lock's token now" },
  },
  examples: ["cotenant snapshot", 'cotenant snapshot -m "before the rewrite" --tag before-rewrite'],
  words: { min: 0, max: 0 },
  prepare: (args) => {
    const end = endOfFlags(args);
    return args.map((arg, i) => (arg === "-m" && i < end ? "--message" : arg));
  },
  async run(context, parsed) {
    const note = parsed.text("message") ?? null;
    orThrow(checkText(note, "note"));
    const tags = checkTags(parsed.texts("tag"));
    const token = parsed.whole("fencing-token") ?? null;
    const consistency = levelOf(parsed.text("consistency"));
    const workspace = await context.workspace();
    const { requestId, secret } = await proof(workspace, parsed);
    const room = await darkroom(workspace);
    const { descriptor, captured, replayed } = await takeSnapshot(room, {
      ...{ note, tags, consistency, fencingToken: token },
      ...(parsed.has("ignored") ? { withIgnored: true } : {}),
      requestId: requestId ?? null,
      secret: secret ?? null,
    });
    const all = await room.shelf.all();
    const snapshot = snapshotJson(descriptor, all);
    const { files, bytes } = descriptor;
    const read = captured === null ? "" : `, ${captured.read} read`;
    const lines = [
      `${replayed ? "already taken" : "snapshot"} ${snapshot["short_id"]}: ${count(files, "file")}, ${bytesText(bytes)}${read}`,
      ...warningWords(descriptor).map((words) => `  note: ${words}`),
      `  restore: cotenant restore ${snapshot["short_id"]}`,
    ];
    return {
      data: { snapshot, replayed },
      text: context.quiet ? descriptor.snapshot_id : lines.join("\n"),
    };
  },
};

function levelOf(text: string | undefined): Consistency | null {
  if (text === undefined) return null;
  const level = CONSISTENCY_LEVELS.find((known) => known === text);
  if (level !== undefined) return level;
  throw new CotenantError("E_USAGE", `--consistency is quiesced or best_effort, not "${printable(text)}"`, {
    hint: "leave it out for the strictest that this worktree allows",
  });
}
