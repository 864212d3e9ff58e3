import type { Command } from "../grammar/command";
import { candidatesFor } from "./candidates";

/** Longer than this nobody waits after a key; a store on a sick disk must not hang a shell. */
const MOST_MS = 2_000;

export const command: Command = {
  usage: "complete -- <word>…",
  about: "For the scripts of 'cotenant completion': what the last word could become, one per line.",
  flags: {},
  examples: ["cotenant complete -- lock ac"],
  words: { min: 0, max: Number.POSITIVE_INFINITY },
  remindsOfExpiry: false,
  async run(_, parsed) {
    const none = { values: [], also: null };
    const late = new Promise<typeof none>((resolve) => setTimeout(() => resolve(none), MOST_MS).unref());
    // Whatever is wrong here: a shell in the middle of a line is no place to hear of it.
    const { values, also } = await Promise.race([candidatesFor(parsed.words).catch(() => none), late]);
    const lines = values.map(({ value, about }) => (about === "" ? value : `${value}\t${about}`));
    return { data: {}, text: [...lines, ...(also === null ? [] : [`:${also}`])].join("\n") };
  },
};
