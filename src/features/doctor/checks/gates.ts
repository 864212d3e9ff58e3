import { parseUlid, printable } from "../../../kernel/ids";
import { count } from "../../../kernel/printing";
import { isRefusal } from "../../../kernel/refusal";
import { inspectRegistry, REGISTRY } from "../../gates/registry";
import { foldResults, LARGEST_RESULTS, pendingAmong } from "../../gates/results";
import { waitingGates } from "../../gates/trust";
import { decodeIssue, type Issue, isTerminal } from "../../issues/model";
import { RESULTS } from "../../issues/stamps";
import { type Check, capped, error, note, ok, type Reported, warning } from "../finding";
import { type Patient, readOrNull } from "../patient";

/** The registry, what issues ask of it, and what was said of their gates, in this worktree. */
export const gatesCheck: Check = {
  name: "gates",
  async look(patient) {
    const { keys, found } = await registryOf(patient);
    const issues = await issuesIn(patient);
    const others = [...undefinedGates(keys, issues), ...(await resultsOf(patient, issues))];
    const all = [...found, ...capped(others)];
    return all.length === 0 ? [ok(count(keys?.size ?? 0, "gate"), { gates: keys?.size ?? 0 })] : all;
  },
};

/** `keys` is null where nothing can be said about what is defined. */
async function registryOf({
  platform,
  repository,
  trust,
}: Patient): Promise<{ keys: ReadonlySet<string> | null; found: Reported[] }> {
  const path = `${repository.worktreeRoot}/${REGISTRY}`;
  const reading = await inspectRegistry(platform, repository.worktreeRoot);
  if ("broken" in reading) {
    const code = reading.isNewer === true ? "E_SCHEMA_NEWER" : "E_CONFIG";
    const next = reading.isNewer === true ? "use the newer cotenant here too" : `mend ${path}`;
    return { keys: null, found: [error(code, `${path} cannot be used: ${reading.broken}`, next, { path })] };
  }
  const { gates, problems } = reading.registry;
  const waiting = waitingGates(platform.digest, trust, gates.values());
  const found = [
    ...capped(
      problems.map(({ key, message }) => warning(`${path}: ${message}`, `mend ${path}`, { path, key })),
    ),
    ...capped(
      waiting.map(({ key, command }) =>
        note(
          `gate ${key} runs "${printable(command ?? "", 200)}", which this clone does not trust`,
          "look at it with 'cotenant trust --list'; a person may allow it with 'cotenant trust'",
          { gate: key },
        ),
      ),
    ),
  ];
  // One that is there but cannot be used has been reported already.
  const known = new Set([...gates.keys(), ...problems.flatMap(({ key }) => (key === null ? [] : [key]))]);
  return { keys: known, found };
}

async function issuesIn({ dataDirectory, platform }: Patient): Promise<ReadonlyMap<string, Issue>> {
  const issues = new Map<string, Issue>();
  for (const name of (await platform.files.readDirectory(`${dataDirectory}/issues`)) ?? []) {
    const id = parseUlid(name);
    if (isRefusal(id) || id !== name) continue;
    const bytes = await readOrNull(platform.files, `${dataDirectory}/issues/${name}/issue.json`);
    const reading = bytes === null ? null : decodeIssue(new TextDecoder().decode(bytes));
    if (reading !== null && "issue" in reading) issues.set(name, reading.issue);
  }
  return issues;
}

function undefinedGates(keys: ReadonlySet<string> | null, issues: ReadonlyMap<string, Issue>): Reported[] {
  if (keys === null) return [];
  return [...issues].flatMap(([id, issue]) =>
    issue.deleted_at !== null || isTerminal(issue)
      ? []
      : [...new Set(issue.gates)]
          .filter((gate) => !keys.has(gate))
          .map((gate) =>
            warning(
              `issue ${id} has a gate "${printable(gate, 80)}" that is not defined`,
              `define it with 'cotenant gate define', or take it off: cotenant gate remove ${id} <key>`,
              { id, gate: printable(gate, 80) },
            ),
          ),
  );
}

async function resultsOf(
  { dataDirectory, platform }: Patient,
  issues: ReadonlyMap<string, Issue>,
): Promise<Reported[]> {
  const folder = `${dataDirectory}/${RESULTS}`;
  const found: Reported[] = [];
  for (const name of ((await platform.files.readDirectory(folder)) ?? []).sort()) {
    const path = `${folder}/${name}`;
    const id = name.replace(/\.jsonl$/, "");
    const issue = issues.get(id);
    if (!name.endsWith(".jsonl") || isRefusal(parseUlid(id))) {
      found.push(note(`${folder}/${printable(name)} is no issue's results`, null, { path }));
      continue;
    }
    if (issue === undefined || issue.deleted_at !== null) {
      const why = issue === undefined ? "which is not in this worktree" : "which was deleted";
      found.push(note(`${path} has results of issue ${id}, ${why}`, null, { path, id }));
    }
    found.push(...(await resultsIn(platform.files, path, issue)));
  }
  return found;
}

async function resultsIn(
  files: Patient["platform"]["files"],
  path: string,
  issue: Issue | undefined,
): Promise<Reported[]> {
  const size = (await files.stat(path))?.size ?? 0;
  if (size > LARGEST_RESULTS)
    return [
      warning(`${path} has ${size} bytes; more than ${LARGEST_RESULTS} are not read`, `look at ${path}`, {
        path,
      }),
    ];
  const bytes = await readOrNull(files, path);
  if (bytes === null) return [warning(`${path} cannot be opened`, `look at ${path}`, { path })];
  const results = foldResults(new TextDecoder().decode(bytes));
  const found: Reported[] = [];
  if (results.broken > 0)
    found.push(
      warning(
        `${path} has ${count(results.broken, "line")} that cannot be read, and do not count`,
        `mend ${path}`,
        {
          path,
          lines: results.broken,
        },
      ),
    );
  if (issue?.state === "gated" && pendingAmong(issue.gates, results).length === 0)
    found.push(
      warning(
        `issue ${issue.id} is gated, and every gate of it is passed`,
        `run: cotenant issue update ${issue.id} --state done`,
        { id: issue.id },
      ),
    );
  return found;
}
