import type { Command } from "../../../cli/grammar/command";
import { CotenantError } from "../../../errors/cotenant-error";
import { CHANGE_FLAGS, requestId } from "../../locks/commands/holding";
import { encodeComment, newComment } from "../comments";
import { meant } from "../meant";
import { shortId } from "../short-id";
import { openDesk, writerAt } from "./issues";

export const command: Command = {
  usage: "issue comment <id> --text <text>",
  about: "Adds a comment. Comments only ever come, so nobody needs a claim for one.",
  flags: {
    ...CHANGE_FLAGS,
    text: { value: "<text>", meaning: "what you have to say; - reads it from standard input" },
  },
  examples: ['cotenant issue comment 7x3k --text "the tests are in login.test.ts"'],
  words: { min: 1, max: 2 },
  completes: ["issue"],
  async run(context, parsed) {
    const given = parsed.text("text") ?? parsed.words[1];
    if (given === undefined)
      throw new CotenantError("E_USAGE", "a comment needs a text", { hint: "add --text <text>" });
    const text =
      given === "-" ? await (await import("../../../cli/terminal/stdin")).readStdin(1 << 20) : given;
    const desk = await openDesk(context);
    const { reader, workspace } = desk;
    const found = await meant(reader, parsed.words[0]!);
    const short = shortId(found.id, await reader.ids());
    const by = workspace === null ? "" : ((await workspace.actorOrNull())?.agentId ?? "");
    const comment = newComment(reader.sources.platform, by, text);
    const payload = { issue_id: found.id, comment_id: comment.id };
    const writer = await writerAt(desk);
    const once = workspace === null ? null : requestId(workspace, parsed);
    const event = { type: "issue.commented", payload } as const;
    const changed = await writer.comment(found.id, encodeComment(comment), event, once);
    return {
      data: { issue_id: found.id, comment, replayed: !changed },
      text: context.quiet ? "" : `${short}: commented`,
    };
  },
};
