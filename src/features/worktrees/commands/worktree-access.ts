import type { Command } from "../../../cli/grammar/command";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { ACCESS_MODES, type Access, accessJson, accessOf, accessText, setAccess } from "../access";

export const command: Command = {
  usage: "worktree access [exclusive|shared]",
  about:
    "Shows or sets how this worktree is written. exclusive, the default: one writer at a time, by lock. shared: no lock,\nat everybody's own risk; snapshots are best effort there, and nothing is restored in place.",
  flags: {},
  examples: [
    "cotenant worktree access",
    "cotenant worktree access shared",
    "cotenant worktree access exclusive",
  ],
  words: { min: 0, max: 1 },
  completes: [{ choices: ACCESS_MODES }],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const [word] = parsed.words;
    const { worktreeId } = (await workspace.worktree("read")).identity;
    if (word === undefined) {
      const access = await accessOf(workspace.coordinator, worktreeId);
      return {
        data: { worktree_id: worktreeId, ...accessJson(access), changed: false },
        text: `${worktreeId} is ${accessText(access)}`,
      };
    }
    if (!(ACCESS_MODES as readonly string[]).includes(word))
      throw new CotenantError("E_USAGE", `a worktree is exclusive or shared, not "${printable(word)}"`, {
        hint: "cotenant worktree access exclusive",
      });
    const session = await workspace.session("write");
    const { clock } = workspace.surroundings.platform;
    const before = await setAccess(session, word as Access, new Date(clock.wallMs()).toISOString());
    return {
      data: {
        worktree_id: session.actor.worktreeId,
        ...accessJson(word as Access),
        changed: before !== word,
      },
      text: context.quiet
        ? ""
        : `${session.actor.worktreeId} is ${before === word ? "" : "now "}${accessText(word as Access)}`,
    };
  },
};
