import { decodeIssue } from "../../issues/model";
import { parseUlid, printable } from "../../kernel/ids";
import { isRefusal } from "../../kernel/refusal";
import type { Files } from "../../platform/platform";
import { type Check, capped, note, ok, type Reported, warning } from "../finding";
import { many } from "../words";

/** The files of this worktree: what a merge or an editor left of them. */
export const issuesCheck: Check = {
  name: "issues",
  async look({ dataDirectory, platform }) {
    const folder = `${dataDirectory}/issues`;
    const found: Reported[] = [];
    let whole = 0;
    for (const name of ((await platform.files.readDirectory(folder)) ?? []).sort()) {
      const id = parseUlid(name);
      const path = `${folder}/${name}/issue.json`;
      if (isRefusal(id) || id !== name) {
        found.push(note(`${folder}/${printable(name)} is not an issue`, null, { path: `${folder}/${name}` }));
        continue;
      }
      const why = await brokenBecause(platform.files, path, name);
      if (why === null) whole++;
      else found.push(warning(`issue ${name} cannot be read: ${why}`, `mend ${path}`, { path, id: name }));
    }
    return found.length === 0 ? [ok(many(whole, "issue"), { issues: whole })] : capped(found);
  },
};

async function brokenBecause(files: Files, path: string, id: string): Promise<string | null> {
  let bytes: Uint8Array | null;
  try {
    bytes = await files.readFile(path);
  } catch {
    return "its file cannot be opened";
  }
  if (bytes === null) return "it has no issue.json";
  const text = new TextDecoder().decode(bytes);
  if (/^<{7} /m.test(text)) return "it has the marks of a merge conflict";
  const reading = decodeIssue(text);
  if ("broken" in reading) return reading.broken;
  return reading.issue.id === id ? null : `it says that it is ${reading.issue.id}`;
}
