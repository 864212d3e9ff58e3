import { DATA_PLANE_LINES } from "../../../identity/data-plane";
import { PROVISIONAL_GITIGNORE } from "../../../identity/worktree-file";
import { type Check, error, note, ok, type Reported, warning } from "../finding";
import type { Patient } from "../patient";

const INIT = "run: cotenant init (it adds what is missing and changes nothing else)";

/** `.cotenant/`: a real directory, with the lines that keep what is of one machine out of Git. */
export const dataPlaneCheck: Check = {
  name: "data-plane",
  async look(patient) {
    const { dataDirectory, platform } = patient;
    const stat = await platform.files.lstat(dataDirectory);
    if (stat === null) return [note(`${dataDirectory} is not there yet`, "run: cotenant init", {})];
    if (stat.kind !== "directory")
      return [
        error(
          "E_PATH_ESCAPE",
          `${dataDirectory} is not a directory of this worktree, and nothing is written there`,
          "look at the symbolic link or file of that name, and put a directory in its place",
          { path: dataDirectory, kind: stat.kind },
        ),
      ];
    const found = [
      ...(await missingLines(patient, ".gitignore", "files of one worktree alone may get into commits")),
      ...(await missingLines(
        patient,
        ".gitattributes",
        "merges of files that are only appended to may conflict",
      )),
    ];
    return found.length === 0 ? [ok(dataDirectory)] : found;
  },
};

async function missingLines(
  { dataDirectory, platform }: Patient,
  name: keyof typeof DATA_PLANE_LINES,
  consequence: string,
): Promise<Reported[]> {
  const path = `${dataDirectory}/${name}`;
  const bytes = await platform.files.readFile(path);
  const text = bytes === null ? "" : new TextDecoder().decode(bytes);
  // Before `init` the first writing command looks after itself.
  if (text === PROVISIONAL_GITIGNORE || (await isProvisional(dataDirectory, platform.files))) return [];
  const present = text.split(/\r?\n/);
  const missing = DATA_PLANE_LINES[name].filter((line) => !present.includes(line));
  if (missing.length === 0) return [];
  return [warning(`${path} lacks ${missing.join(" and ")}: ${consequence}`, INIT, { path, missing })];
}

async function isProvisional(dataDirectory: string, files: Patient["platform"]["files"]): Promise<boolean> {
  const bytes = await files.readFile(`${dataDirectory}/.gitignore`);
  return bytes !== null && new TextDecoder().decode(bytes) === PROVISIONAL_GITIGNORE;
}
