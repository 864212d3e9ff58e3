import { CotenantError, notFoundError } from "../../../errors/cotenant-error";
import { printable, type Ulid } from "../../../kernel/ids";
import { authorAt, type Desk, type RepositoryDesk } from "../desk";
import {
  commitNamed,
  committedContent,
  type DocumentContent,
  documentHistory,
  documentOf,
  fileContent,
  MAX_DOCUMENT_TITLE,
  MOST_COMMITS,
  MOST_DOCUMENTS,
} from "../documents";
import { filesOf, shortTitle } from "../fields";
import { meant } from "../meant";
import type { DocumentRef } from "../model";
import type { FoundIssue } from "../resolve";
import { shortId } from "../short-id";
import { type ChangedIssue, changeIssue, type IssueRequest } from "./issue-change";

/** Files of the repository that belong to an issue, which keeps their paths. */

export interface DocumentNamed {
  readonly issue: string;
  /** As the caller sees it, or as the issue has it. */
  readonly path: string;
}

/** @public The types of the library name it. */
export interface ListedDocument extends DocumentRef {
  /** Whether it is in this worktree. */
  readonly present: boolean;
}

export interface ShownDocument {
  readonly id: Ulid;
  readonly document: DocumentRef;
  /** `worktree`, `HEAD`, or the commit that was asked for. */
  readonly source: string;
  readonly content: DocumentContent;
}

/** A document's place: from the repository's root, in the file's own spelling. */
interface DocumentPlace {
  readonly path: string;
  readonly absolutePath: string;
  readonly isFile: boolean;
}

export const DEFAULT_HISTORY = 50;

export const doc = {
  async add(
    desk: Desk,
    request: IssueRequest & DocumentNamed & { readonly title?: string | undefined },
  ): Promise<ChangedIssue> {
    const title =
      request.title === undefined ? null : shortTitle(request.title, MAX_DOCUMENT_TITLE, "a document");
    return changeIssue(desk, request, async (id) => {
      const { path, isFile, absolutePath } = await typedPlace(desk, request.path);
      const { platform } = desk.reader.sources;
      const stat = isFile ? await platform.files.stat(absolutePath) : null;
      if (stat?.kind !== "file") throw noFile(request.path);
      const by = await authorAt(desk);
      const at = new Date(platform.clock.wallMs()).toISOString();
      return ({ issue }) => {
        const before = issue.documents.find((document) => document.path === path);
        if (before !== undefined && (title === null || before.title === title)) return null;
        const added = { path, title, added_at: before?.added_at ?? at, added_by: before?.added_by ?? by };
        const documents = [...issue.documents.filter((document) => document.path !== path), added];
        if (documents.length > MOST_DOCUMENTS)
          throw new CotenantError("E_LIMIT", `an issue has at most ${MOST_DOCUMENTS} documents`);
        return {
          fields: { documents },
          events: [{ type: "doc.added", payload: { issue_id: id, path, title } }],
        };
      };
    });
  },

  async list(desk: Desk, request: { readonly issue: string }) {
    const { reader } = desk;
    const { id, issue } = await meant(reader, request.issue);
    const documents: ListedDocument[] = [];
    for (const document of issue.documents) {
      const place = await namedPlace(desk, document.path).catch(() => null);
      const stat =
        place?.isFile === true ? await reader.sources.platform.files.stat(place.absolutePath) : null;
      documents.push({ ...document, present: stat?.kind === "file" });
    }
    return { id, shortId: shortId(id, await reader.ids()), documents };
  },

  /** As this worktree has it, else as HEAD does, or as any commit does. */
  async show(
    desk: Desk,
    request: DocumentNamed & { readonly at?: string | undefined },
  ): Promise<ShownDocument> {
    const { id, document } = await meantDocument(desk, request);
    return { id, document, ...(await readDocument(desk, document.path, request.at)) };
  },

  /** The commits that changed it, the newest first, also under former names. */
  async history(desk: RepositoryDesk, request: DocumentNamed & { readonly limit?: number | undefined }) {
    const { limit = DEFAULT_HISTORY } = request;
    if (limit < 1 || limit > MOST_COMMITS)
      throw new CotenantError("E_LIMIT", `--limit ${limit} is not within 1 and ${MOST_COMMITS}`);
    const { id, document } = await meantDocument(desk, request);
    // Also a path that is long gone must be one of this repository.
    const { path } = await namedPlace(desk, document.path);
    const { repository, surroundings } = desk.workspace;
    const commits = await documentHistory(surroundings.git, repository.worktreeRoot, path, limit);
    return { id, path, commits };
  },

  /** Takes it off the issue. The file itself stays. */
  remove(desk: Desk, request: IssueRequest & DocumentNamed): Promise<ChangedIssue> {
    return changeIssue(desk, request, async (id) => async (current) => {
      const { path } = await documentMeant(desk, current, request.path);
      return {
        fields: { documents: current.issue.documents.filter((document) => document.path !== path) },
        events: [{ type: "doc.removed", payload: { issue_id: id, path } }],
      };
    });
  },
};

function noFile(text: string): CotenantError {
  return new CotenantError("E_NOT_FOUND", `there is no file "${printable(text, 200)}"`, {
    hint: "write it first; a document is a file of the repository",
    data: { path: printable(text, 1_000) },
  });
}

async function readDocument(
  desk: Desk,
  path: string,
  at: string | undefined,
): Promise<Pick<ShownDocument, "source" | "content">> {
  const { git, here, platform } = desk.reader.sources;
  if (at !== undefined) {
    if (git === null)
      throw new CotenantError("E_NOT_A_REPO", "outside Git there are no commits to look at", {
        hint: "leave out --at",
      });
    const commit = await commitNamed(git, here.root, at);
    const content = await committedContent(git, here.root, commit, path);
    if (content !== null) return { source: commit, content };
    throw new CotenantError("E_NOT_FOUND", `${printable(at, 80)} has no ${printable(path, 200)}`, {
      hint: "'cotenant doc history' shows the commits that changed it",
      data: { path: printable(path, 1_000), commit },
    });
  }
  const place = await namedPlace(desk, path);
  const content = place.isFile ? await fileContent(platform, place.absolutePath) : null;
  if (content !== null) return { source: "worktree", content };
  const committed = git === null ? null : await committedContent(git, here.root, "HEAD", path);
  if (committed !== null) return { source: "HEAD", content: committed };
  throw notFoundError(
    `${printable(path, 200)} is neither in this worktree nor in its HEAD`,
    "look at another branch with --at <branch>, or in the worktree where the issue is worked on",
    { path: printable(path, 1_000) },
  );
}

async function meantDocument(desk: Desk, request: DocumentNamed) {
  const found = await meant(desk.reader, request.issue);
  return { id: found.id, document: await documentMeant(desk, found, request.path) };
}

/** By the path that a caller sees from where they stand, or by the one that the issue itself has. */
async function documentMeant(desk: Desk, found: FoundIssue, text: string): Promise<DocumentRef> {
  const isKnown = found.issue.documents.some(({ path }) => path === text);
  return documentOf(found, isKnown ? text : await typedPath(desk, text));
}

async function typedPath(desk: Desk, text: string): Promise<string> {
  try {
    return (await typedPlace(desk, text)).path;
  } catch (error) {
    // One that leads nowhere any more is not known to the issue either; that says more.
    if (error instanceof CotenantError && error.code === "E_PATH_ESCAPE") throw error;
    return text;
  }
}

/** A path as the caller typed it, seen from where they stand. */
async function typedPlace({ workspace, reader }: Desk, text: string): Promise<DocumentPlace> {
  if (workspace === null) return plainPlace(reader.sources.here.root, text);
  const { absolutePath, worktreeRoot, isDirectory } = await workspace.path(text);
  const path = absolutePath.slice(worktreeRoot.length + 1).normalize("NFC");
  return { path, absolutePath, isFile: isDirectory === false };
}

/** The place of a path that an issue names. Its author may have written anything. */
async function namedPlace(desk: Desk, path: string): Promise<DocumentPlace> {
  const { workspace, reader } = desk;
  const [checked] = filesOf([path]);
  if (workspace === null) return plainPlace(reader.sources.here.root, checked!);
  return typedPlace(desk, `${workspace.repository.worktreeRoot}/${checked}`);
}

function plainPlace(root: string, text: string): DocumentPlace {
  const [path] = filesOf([text]);
  return { path: path!, absolutePath: `${root}/${path}`, isFile: true };
}
