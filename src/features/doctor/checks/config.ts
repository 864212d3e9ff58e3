import { readAgentFile } from "../../../config/agent-file";
import { COMMITTED_CONFIG, committedConfig } from "../../../config/committed";
import { type ConfigQuestion, configFiles, overruledText } from "../../../config/load";
import { CotenantError } from "../../../errors/cotenant-error";
import { printable } from "../../../kernel/ids";
import { type Check, capped, error, fromError, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";
import { presenceOf } from "../tree";
import { some } from "../words";

/** Every source, and what of it does not count. */
export const configCheck: Check = {
  name: "config",
  async look(patient) {
    const found = [
      ...problems(patient),
      ...(await agentFile(patient)),
      ...untrusted(patient),
      ...variables(patient),
    ];
    return found.some(({ level }) => level === "error") ? found : [...found, ...(await inEffect(patient))];
  },
};

function problems({ configProblems, configFailure, question, trust, trustFailure }: Patient): Reported[] {
  const found = configProblems.map(({ place, line, key, nearest, message }) => {
    const where = line === null ? place : `${place}:${line}`;
    const mend = key === null ? `mend ${where}` : `mend or remove ${key} in ${where}`;
    const next = nearest === null ? mend : `did you mean ${nearest}? ${mend}`;
    return error("E_CONFIG", `${where}: ${message}`, next, { place, line, key, nearest });
  });
  const others: Reported[] = [];
  if (configFailure !== null)
    others.push(fromError(configFailure, "reading the configuration", question.worktreeRoot ?? ""));
  if (trustFailure !== null) others.push(fromError(trustFailure, "reading what this clone trusts", ""));
  if (trust.problem !== null)
    others.push(warning(trust.problem, "a person looks at it, and runs 'cotenant trust' again"));
  return [...capped(found), ...others];
}

async function agentFile({ question }: Patient): Promise<Reported[]> {
  try {
    await readAgentFile(question);
    return [];
  } catch (failure) {
    if (!(failure instanceof CotenantError)) throw failure;
    return [error(failure.code, failure.message, failure.hint, failure.data)];
  }
}

function untrusted({ config }: Patient): Reported[] {
  return config.untrusted.map(({ key, value, does, place, line }) =>
    warning(
      `${line === null ? place : `${place}:${line}`} ${does} ${key}; that does not count in this clone`,
      "look at it with 'cotenant trust --list'; a person may allow it with 'cotenant trust'",
      { key, value: printable(JSON.stringify(value), 200), place, line },
    ),
  );
}

/** Variables that do not count: looser than the repository's file, or none of ours. */
function variables({ config }: Patient): Reported[] {
  const unknown = config.layers.flatMap((layer) => layer.unknown ?? []);
  return [
    ...config.overruled.map((entry) =>
      warning(overruledText(entry), `take ${entry.variable} out of the environment`, {
        key: entry.key,
        variable: entry.variable,
        place: entry.place,
        line: entry.line,
      }),
    ),
    ...unknown.map(({ variable, nearest }) =>
      nearest === null
        ? note(`${variable} is no variable of cotenant's`, null, { variable, nearest })
        : warning(`${variable} is no variable of cotenant's`, `did you mean ${nearest}?`, {
            variable,
            nearest,
          }),
    ),
  ];
}

async function isCommitted({ platform, committed }: ConfigQuestion): Promise<boolean> {
  if (committed === undefined) return false;
  // Another check says what is wrong with Git.
  return (await committedConfig(platform, committed).catch(() => null)) !== null;
}

async function inEffect({ question, platform }: Patient): Promise<Reported[]> {
  const files: string[] = [];
  const closed: Reported[] = [];
  for (const { source, file } of configFiles(question)) {
    const presence = await presenceOf(platform.files, file);
    if (presence === "there") files.push(file);
    else if (source === "worktree" && (await isCommitted(question))) files.push(COMMITTED_CONFIG);
    if (presence === "closed")
      closed.push(note(`${file} cannot be reached, and so does not count`, null, { file }));
  }
  const message = files.length === 0 ? "no files; the defaults are in effect" : `valid: ${some(files)}`;
  return [...closed, ok(message, { files })];
}
