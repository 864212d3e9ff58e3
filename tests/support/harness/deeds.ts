/** What an agent decides to do, before any harness has put it into its own words. Paths are below the root. */
export type Deed =
  | { readonly do: "write"; readonly file: string; readonly content: string }
  | { readonly do: "edit"; readonly file: string; readonly content: string }
  | { readonly do: "delete"; readonly file: string }
  | { readonly do: "notebook"; readonly file: string; readonly content: string }
  | { readonly do: "patch"; readonly changes: readonly Change[] }
  | { readonly do: "shell"; readonly command: string };

export interface Change {
  readonly file: string;
  /** Null deletes it. */
  readonly content: string | null;
}

/** The files that a deed writes by itself; a shell command writes what it likes. */
export function changesOf(deed: Deed): readonly Change[] {
  switch (deed.do) {
    case "write":
    case "edit":
    case "notebook":
      return [{ file: deed.file, content: deed.content }];
    case "delete":
      return [{ file: deed.file, content: null }];
    case "patch":
      return deed.changes;
    case "shell":
      return [];
  }
}

/** In the form that Codex and opencode take. */
export function patchText(changes: readonly (Change & { readonly isNew: boolean })[]): string {
  const parts = changes.map(({ file, content, isNew }) => {
    if (content === null) return `*** Delete File: ${file}`;
    const added = content
      .replace(/\n$/, "")
      .split("\n")
      .map((line) => `+${line}`);
    if (isNew) return [`*** Add File: ${file}`, ...added].join("\n");
    return [`*** Update File: ${file}`, "@@", ...added].join("\n");
  });
  return ["*** Begin Patch", ...parts, "*** End Patch", ""].join("\n");
}
