import { printable } from "../../../kernel/ids";
import { CLIENT_HOOKS } from "../../hooks/installation/block";
import { type HookState, lookAtHooks, statesOf } from "../../hooks/installation/look";
import { hooksHome } from "../../hooks/installation/place";
import { howToInstall } from "../../hooks/installation/plan";
import { readRecord } from "../../hooks/installation/record";
import { type Check, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";
import { some } from "../words";

/** Where it is not known what was installed, what would be is of no interest: only whether it may be. */
const NO_PROGRAM = { node: "", program: "" };

/** Only where hooks were once asked for: nobody has to have them. */
export const hooksCheck: Check = {
  name: "hooks",
  async look(patient) {
    const { platform, repository, place: surroundings } = patient;
    const record = await readRecord(platform, repository.controlDir);
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
            `run: chmod +x ${off.map(({ path }) => quoted(path)).join(" ")}`,
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

/** As a shell takes it. */
function quoted(path: string): string {
  return `'${printable(path, 1_000).replaceAll("'", "'\\''")}'`;
}
