import { isObject, type JsonObject } from "../../codec/json";
import { CotenantError } from "../../errors/cotenant-error";
import { isObjectId, type ObjectFormat } from "../../git/object-name";
import { MODES } from "../../git/tree";
import { printable } from "../../kernel/ids";
import { FILE_MODES, type Input } from "./draft";

const FIELDS: Readonly<Record<string, readonly string[]>> = {
  put: ["op", "path", "content", "encoding", "mode", "base_blob"],
  delete: ["op", "path", "base_blob"],
  rename: ["op", "from", "to"],
  patch: ["op", "patch", "encoding"],
  "from-worktree": ["op", "path"],
};

/** Changes as programs send them: `{"changes":[{"op":"put","path":…,"content":…},…]}`. Paths begin at the root. */
export function parseChanges(text: string, format: ObjectFormat): Input[] {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (error) {
    throw wrong(`it is no JSON: ${printable((error as Error).message, 200)}`);
  }
  const list = isObject(document) && Object.keys(document).join() === "changes" ? document["changes"] : null;
  if (!Array.isArray(list)) throw wrong('it is no {"changes": […]}');
  return list.map((entry, at) => parseChange(entry, at + 1, format));
}

function parseChange(entry: unknown, number: number, format: ObjectFormat): Input {
  const place = `change ${number}`;
  if (!isObject(entry)) throw wrong(`${place} is no object`);
  const op = entry["op"];
  if (typeof op !== "string" || !Object.hasOwn(FIELDS, op))
    throw wrong(`${place} has no "op" out of ${Object.keys(FIELDS).join(", ")}`);
  const unknown = Object.keys(entry).find((name) => !FIELDS[op]!.includes(name));
  if (unknown !== undefined)
    throw wrong(`${place} has "${printable(unknown, 50)}", which "${op}" does not know`);
  const text = (name: string) => {
    const value = entry[name];
    if (typeof value !== "string") throw wrong(`${place} needs "${name}" as text`);
    return value;
  };
  switch (op) {
    case "put":
      return {
        op,
        path: text("path"),
        content: contentOf(entry, text("content"), place),
        mode: modeOf(entry, place),
        newMode: MODES.file,
        ...baseBlobOf(entry, place, format),
      };
    case "delete":
      return { op, path: text("path"), ...baseBlobOf(entry, place, format) };
    case "rename":
      return { op, from: text("from"), to: text("to") };
    case "patch":
      return { op, patch: contentOf(entry, text("patch"), place), name: place };
    default:
      return { op: "from-worktree", path: text("path") };
  }
}

function contentOf(entry: JsonObject, text: string, place: string): Uint8Array {
  const encoding = entry["encoding"] ?? "utf8";
  if (encoding === "utf8") return new TextEncoder().encode(text);
  if (encoding !== "base64") throw wrong(`${place} has an "encoding" other than utf8 and base64`);
  if (!/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(text)) throw wrong(`${place} is not base64`);
  const binary = atob(text.replace(/\s/g, ""));
  return Uint8Array.from(binary, (char) => char.charCodeAt(0));
}

function modeOf({ mode }: JsonObject, place: string): string | null {
  if (mode === undefined) return null;
  if (typeof mode === "string" && FILE_MODES.includes(mode)) return mode;
  throw wrong(`${place} has a "mode" other than ${FILE_MODES.join(", ")}`);
}

function baseBlobOf({ base_blob: blob }: JsonObject, place: string, format: ObjectFormat) {
  if (blob === undefined) return {};
  if (blob === null || (typeof blob === "string" && isObjectId(format, blob))) return { baseBlob: blob };
  throw wrong(`${place} has a "base_blob" that is neither null nor a whole object id`);
}

function wrong(why: string): CotenantError {
  return new CotenantError("E_USAGE", `the list of changes is not understood: ${why}`, {
    hint: `for example {"changes":[{"op":"put","path":"src/a.ts","content":"…"}]}; cotenant's docs/PUBLISH.md has all of it`,
  });
}
