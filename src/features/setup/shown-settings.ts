import { AGENT_KEYS, inspectAgentFile, isAgentKey } from "../../config/agent-file";
import { type Config, type ConfigOrigin, configFiles, overruledText } from "../../config/load";
import { type ConfigProblem, configError } from "../../config/problem";
import { CONFIG_KEYS, CONFIG_SECTIONS, type ConfigKey, sectionOf, settingOf } from "../../config/schema";
import type { Surroundings } from "../../coordinator/workspace";
import { knownKey, type Surveyed, survey } from "./settings";

type Origin = Pick<ConfigOrigin, "place" | "line">;

/** One setting, and every place that it comes from: a list that sources add to has several. */
function shown(config: Config, key: ConfigKey) {
  const { source, place, line } = config.origin(key);
  const all = config.layers.flatMap(({ entries }) => entries.get(key) ?? []);
  const origins: readonly Origin[] =
    settingOf(key).tighten === "adding" && all.length > 0 ? all : [{ place, line }];
  const setting = { value: config.values[key], source, place, line, default: settingOf(key).default };
  return { setting: { key: key as string, ...setting }, origins };
}

export type ShownSetting = ReturnType<typeof shown>;

function at({ place, line }: Origin): string {
  return line === null ? place : `${place}:${line}`;
}

/** All settings, or those of a section, or one; what waits for trust; and what is wrong, whatever was asked for. */
export async function shownSettings(
  surroundings: Surroundings,
  word: string | undefined,
): Promise<Surveyed & { readonly settings: readonly ShownSetting[]; readonly remarks: readonly string[] }> {
  const surveyed = await survey(surroundings);
  const { config } = surveyed;
  const own = await inspectAgentFile(surroundings);
  const problems = [...surveyed.problems, ...own.problems];
  const { keys, ownKeys } = selected(word);
  const settings = [
    ...keys.map((key) => shown(config, key)),
    ...own.settings
      .filter(({ key }) => ownKeys.includes(key))
      .map((setting) => ({ setting, origins: [setting] })),
  ];
  const remarks = [
    ...problems.map((problem) => `${at(problem)}: ${problem.message}`),
    ...config.untrusted.map(
      (entry) =>
        `${at(entry)} ${entry.does === "names" ? "names" : "sets"} ${entry.key}, which is not honoured before 'cotenant trust'`,
    ),
    ...config.overruled.map(overruledText),
  ];
  return { ...surveyed, problems, settings, remarks };
}

/** Those of the configuration, and those of agent.toml. */
function selected(word: string | undefined): {
  readonly keys: readonly ConfigKey[];
  readonly ownKeys: readonly string[];
} {
  if (word === undefined) return { keys: CONFIG_KEYS, ownKeys: AGENT_KEYS };
  const ownKeys = AGENT_KEYS.filter((key) => key === word || sectionOf(key) === word);
  if (ownKeys.length > 0) return { keys: [], ownKeys };
  const keys = CONFIG_SECTIONS.includes(word)
    ? CONFIG_KEYS.filter((key) => sectionOf(key) === word)
    : [knownKey(word)];
  return { keys, ownKeys };
}

export async function oneSetting(surroundings: Surroundings, word: string): Promise<ShownSetting["setting"]> {
  if (!isAgentKey(word)) {
    const key = knownKey(word);
    return shown((await survey(surroundings)).config, key).setting;
  }
  const { settings, problems } = await inspectAgentFile(surroundings);
  if (problems.length > 0) throw configError(problems);
  return settings.find(({ key }) => key === word)!;
}

/** Which files there are; each thing that is wrong is told first, and all of it is one error. */
export async function validateSettings(
  surroundings: Surroundings,
  onProblem: (words: string) => void,
): Promise<{ readonly files: readonly string[]; readonly untrusted: Config["untrusted"] }> {
  const { config, problems, question } = await survey(surroundings);
  if (problems.length > 0) {
    for (const problem of problems) onProblem(problemText(problem));
    throw configError(problems);
  }
  const files: string[] = [];
  for (const { file } of configFiles(question))
    if ((await question.platform.files.stat(file)) !== null) files.push(file);
  return { files, untrusted: config.untrusted };
}

function problemText(problem: ConfigProblem): string {
  const near = problem.nearest === null ? "" : `; did you mean ${problem.nearest}?`;
  return `${at(problem)}: ${problem.message}${near}`;
}
