import { readAgentFile } from "../../../config/agent-file";
import { COMMITTED_CONFIG, committedConfig } from "../../../config/committed";
import { type ConfigQuestion, configFiles, overruledText } from "../../../config/load";
import { CotenantError } from "../../../errors/cotenant-error";
import { ISSUE_MERGE_DRIVER } from "../../../identity/data-plane";
import { printable } from "../../../kernel/ids";
import { shellQuoted, some } from "../../../kernel/printing";
import { viaFlag } from "../../harnesses/command-line";
import { lookAt } from "../../harnesses/look";
import { readRecord } from "../../harnesses/record";
import { allSites } from "../../harnesses/sites";
import { stateOf } from "../../harnesses/state";
import { diverged, mainHistory } from "../../hooks/divergence";
import { CLIENT_HOOKS } from "../../hooks/installation/block";
import { type HookState, lookAtHooks, statesOf } from "../../hooks/installation/look";
import { hooksHome } from "../../hooks/installation/place";
import { howToInstall } from "../../hooks/installation/plan";
import { readRecord as readHooksRecord } from "../../hooks/installation/record";
import { installationIn, MergeDriver } from "../../issues/merge-driver";
import { type Check, capped, error, fromError, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";
import { presenceOf } from "../tree";

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

/** Where it is not known what was installed, what would be is of no interest: only whether it may be. */
const NO_PROGRAM = { node: "", program: "" };

/** Only where hooks were once asked for: nobody has to have them. */
export const hooksCheck: Check = {
  name: "hooks",
  async look(patient) {
    const { platform, repository, place: surroundings } = patient;
    const record = await readHooksRecord(platform, repository.controlDir);
    if (record === null) return [ok("none are wanted")];
    const { git, env } = surroundings;
    const scene = await lookAtHooks(await hooksHome({ platform, git, env }, repository), CLIENT_HOOKS);
    const { place } = scene;
    const states = statesOf(scene);
    const next = `${howToInstall(scene, record.program ?? NO_PROGRAM)} ('cotenant hooks status' shows each)`;
    const data = { directory: place.directory };
    if (place.whose === "nowhere" || !record.directories.includes(place.directory)) {
      const value = printable(place.setting?.value ?? "", 200);
      if (states.some(({ state }) => state !== "installed"))
        return [
          warning(
            `hooks were installed in ${some(record.directories)}, but Git looks in "${value || printable(place.directory, 300)}"${place.setting === null ? "" : ` (core.hooksPath, ${place.setting.scope})`}`,
            next,
            data,
          ),
        ];
    }
    const problems = [...wrong(states, next), ...(await gone(patient, states, next))];
    return problems.length === 0 ? [ok(`installed in ${place.directory}`)] : problems;
  },
};

function wrong(states: readonly HookState[], next: string): Reported[] {
  const named = (all: readonly HookState[]) =>
    some(
      all.map(({ hook }) => hook),
      5,
    );
  const lacking = states.filter(({ state }) => state === "missing" || state === "foreign");
  const outdated = states.filter(({ state }) => state === "outdated");
  const off = states.filter(({ state, isExecutable }) => state !== "missing" && !isExecutable);
  const paths = (all: readonly HookState[]) => ({ paths: all.map(({ path }) => path) });
  return [
    ...(lacking.length === 0
      ? []
      : [warning(`Git does not call cotenant in ${named(lacking)}`, next, paths(lacking))]),
    ...(outdated.length === 0
      ? []
      : [warning(`lines of another version, or damaged, in ${named(outdated)}`, next, paths(outdated))]),
    ...(off.length === 0
      ? []
      : [
          warning(
            `not executable, so Git passes them over: ${named(off)}`,
            `run: chmod +x ${off.map(({ path }) => shellQuoted(printable(path, 1_000))).join(" ")}`,
            paths(off),
          ),
        ]),
  ];
}

async function gone({ platform }: Patient, states: readonly HookState[], next: string): Promise<Reported[]> {
  const named = new Set(
    states.flatMap(({ program }) => (program === null ? [] : [program.node, program.program])),
  );
  for (const path of named)
    if ((await platform.files.stat(path)) === null)
      return [warning(`the hooks were installed from ${path}, which is gone`, next, { path })];
  return [];
}

const UNDO_CHANGE = "keep elsewhere what you need of it, delete it";

/** Only where a harness was once told to ask: nobody has to have one. */
export const harnessesCheck: Check = {
  name: "harnesses",
  async look({ platform, repository, modes, layout, place }: Patient) {
    const shelf = { directory: `${layout.root}/agents`, modes };
    const root = repository.worktreeRoot;
    const found: Reported[] = [];
    const fine: string[] = [];
    for (const site of allSites({ root, home: null, env: place.env })) {
      if (site.level !== "project") continue;
      const record = await readRecord(platform, shelf, site.path);
      if (record === null) continue;
      const file = await lookAt(platform.files, site, root);
      const { state, program, via, why } = stateOf({ site, file }, (text) => platform.digest.sha256(text));
      const named = program === null ? [] : [program.node, program.program];
      const stats = await Promise.all(named.map((path) => platform.files.stat(path)));
      const next = `run: cotenant agent install ${site.harness}${viaFlag(via)} ('cotenant agent doctor' tries it)`;
      const data = { harness: site.harness, path: site.path };
      if (state === "missing")
        found.push(warning(`${site.shown} no longer has ${site.harness} ask before it writes`, next, data));
      else if (state === "unreadable")
        found.push(warning(`${site.shown} cannot be read: ${why}`, `mend it, then ${next}`, data));
      else if (state === "changed")
        found.push(warning(`${site.shown} was changed by hand`, `${UNDO_CHANGE}, then ${next}`, data));
      else if (stats.includes(null))
        found.push(warning(`${site.shown} starts a program that is gone: ${named.at(-1)}`, next, data));
      else if (state === "outdated")
        found.push(warning(`entries of another version in ${site.shown}`, next, data));
      else fine.push(site.harness);
    }
    if (found.length > 0) return found;
    return [ok(fine.length === 0 ? "none were told to ask before they write" : `asking: ${fine.join(", ")}`)];
  },
};

const INIT = "run: cotenant init (it adds what is missing and changes nothing else)";

/** Attributes come with the code; the driver that they name is registered in each clone. */
export const mergingCheck: Check = {
  name: "merging",
  async look(patient) {
    const { place, repository, platform } = patient;
    // Where attributes are missing, the data plane's check says so.
    if (!(await isAskedFor(patient))) return [ok("no driver for issues is asked for")];
    const command = await new MergeDriver(place.git, repository.commonDir).command();
    if (command === null)
      return [
        warning(
          `this clone has no merge driver ${ISSUE_MERGE_DRIVER}: Git merges issues line by line, and every change on both sides is a conflict`,
          INIT,
          { driver: ISSUE_MERGE_DRIVER },
        ),
      ];
    const installed = installationIn(command);
    for (const path of installed === null ? [] : [installed.program, installed.node])
      if ((await platform.files.stat(path)) === null)
        return [
          warning(`the merge driver for issues was registered from ${path}, which is gone`, INIT, {
            driver: ISSUE_MERGE_DRIVER,
            path,
          }),
        ];
    return [ok("Git merges issues field by field")];
  },
};

/** By whatever file of attributes. */
async function isAskedFor({ place, repository }: Patient): Promise<boolean> {
  const path = ".cotenant/issues/any/issue.json";
  const { status, stdout } = await place.git.run(["check-attr", "-z", "merge", "--", path], {
    cwd: repository.worktreeRoot,
  });
  return status === 0 && new TextDecoder().decode(stdout).split("\0")[2] === ISSUE_MERGE_DRIVER;
}

/** Nobody has to have one; but what only a daemon does is not done without it. */
export const daemonCheck: Check = {
  name: "daemon",
  async look(patient: Patient) {
    const missed = (await patient.place.missedDaemon?.(patient)) ?? null;
    if (missed === null) return [ok("nothing is left undone for want of a daemon")];
    const next = `run: ${missed.next}`;
    return [missed.what === "http" ? error("E_DAEMON", missed.message, next) : warning(missed.message, next)];
  },
};

/** Whether what concerns everybody could be changed on this branch. For `validate divergence`: a branch may lag. */
export const divergenceCheck: Check = {
  name: "divergence",
  async look({ config, place, repository }) {
    const configured = config.values["global_operations.main_branch"];
    const history = await mainHistory(place.git, repository.worktreeRoot, configured);
    if (history.kind === "no-main")
      return [note("there is no main branch here, so nothing can be lacking", null)];
    if (history.kind === "has")
      return [ok(`all of ${history.main} is in the current history`, { ...history })];
    const { code, message, hint, data } = diverged(history);
    return [error(code, message, hint, data)];
  },
};
