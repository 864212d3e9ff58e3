import type { Command, Context } from "../command";
import { changeFile, checkedValue, survey, type Target, targetOf } from "../configuring";
import { trustKeys } from "../trusting";

export const GLOBAL = {
  global: { meaning: "your own configuration (config.toml, agent.toml) instead of the repository's" },
};

export const command: Command = {
  usage: "config set [--global] <key> <value>",
  about:
    "Sets one setting in this repository's .cotenant/config.toml, or with --global in your own. Comments and\neverything else in the file stay. A list is separated by commas, a table is name=value,name=value.",
  flags: GLOBAL,
  examples: [
    "cotenant config set coordination.default_ttl_secs 1200",
    "cotenant config set --global agent.id agent:alice",
  ],
  words: { min: 2, max: 2 },
  completes: ["setting", "setting-value"],
  mendsConfig: true,
  async run(context, parsed) {
    const surveyed = await survey(context);
    const [name, text] = parsed.words as [string, string];
    const target = targetOf(surveyed, name, parsed.has("global"));
    const { value, toml } = checkedValue(target, text);
    const changed = await asConfigWriter(context, target, parsed.has("global"), () =>
      changeFile(surveyed, target, toml),
    );
    const remarks = await afterwards(context, target, parsed.has("global"));
    const words = [
      changed ? `${name} = ${toml} in ${target.file}` : `${name} was ${toml} already`,
      ...remarks,
    ];
    return {
      data: { key: name, value, file: target.file, changed },
      text: context.quiet ? "" : words.join("\n"),
    };
  },
};

/** What concerns everybody is changed by one at a time: the scope's lease is taken, unless the caller has it. */
export async function asConfigWriter<T>(
  context: Context,
  { key }: Target,
  isGlobal: boolean,
  change: () => Promise<T>,
): Promise<T> {
  if (isGlobal || key === null) return change();
  const { withScope } = await import("../scope");
  return withScope(await context.workspace(), "config", change);
}

/** What the new value comes to: it may need trust, or something stronger may stand above it. */
async function afterwards(context: Context, { key, file }: Target, isGlobal: boolean): Promise<string[]> {
  if (key === null) return [];
  const surveyed = await survey(context);
  if (!isGlobal && surveyed.config.untrusted.some((entry) => entry.key === key)) {
    const trusted = await trustKeys(await context.workspace(), surveyed, [key]);
    return [
      trusted.length > 0
        ? "it loosens a rule, and this clone trusts it now; other clones run 'cotenant trust'"
        : "it loosens a rule: not honoured until a person runs 'cotenant trust'",
    ];
  }
  const { place } = surveyed.config.origin(key);
  return place === file ? [] : [`${place} stands above it and still decides`];
}
