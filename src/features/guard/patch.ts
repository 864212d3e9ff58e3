/**
 * The files that a patch names, in the envelope that Codex, Copilot and opencode call `apply_patch`, and in unified diffs.
 * Only the headers are read, and generously: a file too many is leased and given back, a file too few is written
 * unguarded.
 */
export function patchedPaths(patch: string): string[] {
  const paths = new Set<string>();
  const isEnvelope = /^\s*\*\*\* Begin Patch/m.test(patch);
  for (const raw of patch.split("\n")) {
    // Indented and CRLF headers count: whoever applies the patch takes them, too.
    const line = raw.trim();
    const path = isEnvelope ? envelopePath(line) : diffPath(raw);
    if (path !== null && path !== "") paths.add(path);
  }
  return [...paths];
}

export function looksLikePatch(text: string): boolean {
  return (
    /^\s*\*\*\* Begin Patch/m.test(text) || /^--- .+\r?\n\+\+\+ /m.test(text) || /^diff --git /m.test(text)
  );
}

const ENVELOPE_HEADERS = ["*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"] as const;

function envelopePath(line: string): string | null {
  if (!line.startsWith("*** ")) return null;
  const header = ENVELOPE_HEADERS.find((start) => line.startsWith(start));
  return header === undefined ? null : line.slice(header.length).trim();
}

function diffPath(raw: string): string | null {
  const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
  if (line.startsWith("rename from ") || line.startsWith("rename to "))
    return line.slice(line.indexOf(" ", 7) + 1);
  if (!line.startsWith("--- ") && !line.startsWith("+++ ")) return null;
  // A time stamp may follow, after a tab.
  const name = line.slice(4).split("\t")[0]!.trim();
  if (name === "/dev/null") return null;
  return /^[abiwco12]\//.test(name) ? name.slice(2) : name;
}
