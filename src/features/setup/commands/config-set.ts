import type { Command, Context } from "../../../cli/grammar/command";
import { type ConfigKey, sectionOf, settingOf } from "../../../config/schema";
import { fileFailure } from "../../../errors/cotenant-error";
import { checkedValue, planChange, type Surveyed, survey, type Target, targetOf } from "./configuring";
import { trustKeys } from "./trusting";

export const GLOBAL = {
  global: { meaning: "your own configuration (config.toml, agent.toml) instead of the repository's" },
};

export const command: Command = {
  usage: "config set [--global] <key> <value>",
  about:
    "Sets one setting in this repository's .cotenant/config.toml, or with --global in your own. Comments and\neverything else in the file stay. A list is separated by commas and replaces the one\nthat was there, a table is name=value,name=value.",
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
    const target = targetOf(surveyed, name, parsed.has("global"), ["set", text]);
    const { value, toml } = checkedValue(target, text);
    const changed = await changeSetting(context, surveyed, target, parsed.has("global"), toml);
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

/** Answers whether anything changed. What concerns everybody is changed by one at a time, on top of the main branch. */
export async function changeSetting(
  context: Context,
  surveyed: Surveyed,
  target: Target,
  isGlobal: boolean,
  toml: string | null,
): Promise<boolean> {
  const { key } = target;
  try {
    if (!isGlobal && key !== null) return await changeShared(context, surveyed, target, key, toml);
    const stage = await planChange(surveyed, target, toml);
    await (await stage?.())?.();
    return stage !== null;
  } catch (error) {
    throw fileFailure(error, "changing the configuration", target.file);
  }
}

async function changeShared(
  context: Context,
  surveyed: Surveyed,
  target: Target,
  key: ConfigKey,
  toml: string | null,
): Promise<boolean> {
  const { changeForAll } = await import("../shared-change");
  const scope = sectionOf(key) === "types" ? "types" : "config";
  const workspace = await context.workspace();
  const changed = await changeForAll(workspace, scope, async () => {
    const stage = await planChange(surveyed, target, toml);
    return { answer: stage !== null, stage, payload: { scope, key, value: toml } };
  });
  if (key === "policy.paths") {
    const { remarksOnRules } = await import("../../../coordinator/path-rules");
    workspace.warnings.push(...(await remarksOnRules(workspace, (await survey(context)).config)));
  }
  return changed;
}

/** What the new value comes to: it may need trust, or something stronger may stand above it. */
async function afterwards(context: Context, { key, file }: Target, isGlobal: boolean): Promise<string[]> {
  if (key === null) return [];
  const surveyed = await survey(context);
  if (!isGlobal && surveyed.config.untrusted.some((entry) => entry.key === key)) {
    const trusted = await trustKeys(await context.workspace(), surveyed, [key]);
    return [
      trusted.length > 0
        ? "it needs trust: this clone trusts it now; other clones run 'cotenant trust'"
        : "it needs trust: not honoured until a person runs 'cotenant trust'",
    ];
  }
  if (key === "coordination.auto_renew_leases") {
    const { missedDaemon } = await import("../../../daemon/missed");
    const missed = await missedDaemon(await context.workspace());
    if (missed?.what === "renewals") return [`it takes a daemon: ${missed.next}`];
  }
  // Where every source adds its own, none stands above another.
  if (settingOf(key).tighten === "adding") return [];
  const { place } = surveyed.config.origin(key);
  return place === file ? [] : [`${place} stands above it and still decides`];
}
