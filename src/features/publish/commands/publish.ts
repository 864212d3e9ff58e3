import type { Command, Context, Output, Parsed } from "../../../cli/grammar/command";
import { leaseJson } from "../../../cli/terminal/render";
import { shownLines } from "../../../cli/terminal/shown-text";
import type { HolderRequest } from "../../../coordinator/requests";
import { CotenantError, usageError } from "../../../errors/cotenant-error";
import { ERRORS } from "../../../errors/registry";
import { printable } from "../../../kernel/ids";
import { count, shellWord } from "../../../kernel/printing";
import { HOLDER_FLAGS, holderFrom } from "../../locks/commands/flags";
import { branchName } from "../branch-rules";
import { type PublishOptions, previewPublish, publish as publishChanges } from "../operations";
import type { Preview } from "../preview";
import type { Published, PublishedPath } from "../request";
import { namedChangesFrom, pushFrom } from "./flags";

export const publish: Command = {
  usage:
    "publish --branch <name> --message <text> [--patch <file>]… [--put <path>=<file>]… [--delete <path>]…\n         [--rename <from>=<to>]… [--from-worktree <path>…] [--changes <file>] [--base <commit>] [--push]",
  about:
    "Commits to a branch that nobody has checked out, without a checkout: the shared index, HEAD and the working tree\nstay as they are. Every changed path must be under a lease of yours. If the branch has moved, the change is merged\nonto it; a conflict moves nothing. Paths are seen from where you stand; in --changes, from the repository's root.",
  flags: {
    ...HOLDER_FLAGS,
    branch: { value: "<name>", meaning: "the branch to publish to; made where there is none" },
    message: {
      value: "<text>",
      many: true,
      meaning: "the commit's message; once more for another paragraph",
    },
    base: {
      value: "<commit>",
      meaning:
        "against what the changes are meant (else the branch, here or on the remote, else its default branch)",
    },
    patch: {
      value: "<file>",
      many: true,
      completes: "path",
      meaning: "a patch by Git; - for standard input",
    },
    put: { value: "<path>=<file>", many: true, meaning: "this path gets that file's content" },
    delete: {
      value: "<path>",
      many: true,
      completes: "path",
      meaning: "a file, or a directory with all in it",
    },
    rename: { value: "<from>=<to>", many: true, meaning: "a file, or a directory with all in it" },
    "from-worktree": {
      value: "<path>",
      many: true,
      completes: "path",
      meaning: "files and directories as they are in the working tree; more may follow",
    },
    changes: {
      value: "<file>",
      completes: "path",
      meaning: "a list of changes as JSON; - for standard input",
    },
    author: { value: "<name <mail>>", meaning: "who wrote it (else as Git knows you)" },
    sign: { meaning: "sign the commit (also if commit.gpgSign says so)" },
    push: { meaning: "push the branch afterwards, or alone; never asks for a password" },
    remote: { value: "<name>", meaning: "where to push (else the branch's own, else origin)" },
    release: { meaning: "give back the leases that covered it" },
    settle: { meaning: "put files of the working tree back to HEAD that are just as they were published" },
    "dry-run": { meaning: "show the diff and what would refuse it, and publish nothing" },
  },
  examples: [
    'cotenant publish --branch work/login --message "Fix the login" --from-worktree src/app.ts',
    'cotenant publish --branch work/docs --message "Say how" --put docs/login.md=src/app.ts --dry-run',
  ],
  words: { min: 0, max: Number.POSITIVE_INFINITY },
  completes: ["path"],
  async run(context, parsed) {
    const workspace = await context.workspace();
    const options = optionsFrom(context, parsed, holderFrom(parsed, workspace));
    if (parsed.has("dry-run")) return previewOutput(context, await previewPublish(workspace, options));
    const published = await publishChanges(workspace, options);
    refuseFailedPush(published);
    return output(context, published, parsed.has("release"));
  },
};

function optionsFrom(context: Context, parsed: Parsed, holder: HolderRequest): PublishOptions {
  const branch = parsed.text("branch");
  if (branch === undefined)
    throw usageError("no branch was named to publish to", "for example --branch work/login");
  return {
    ...holder,
    branch,
    base: parsed.text("base"),
    message: parsed.texts("message").join("\n\n"),
    author: parsed.text("author"),
    sign: parsed.has("sign"),
    push: pushFrom(parsed),
    named: namedChangesFrom(parsed),
    release: parsed.has("release"),
    settle: parsed.has("settle"),
    onProgress: (line) => {
      if (!context.quiet) context.note(printable(line, 300));
    },
  };
}

/** It is committed all the same, and the error says so. */
function refuseFailedPush({ push, ref, commit, publishId }: Published): void {
  if (push === null || !("why" in push)) return;
  const code = push.result === "failed" ? push.code : "E_REMOTE_UNREACHABLE";
  const what = push.result === "failed" ? "did not take it" : "may or may not have it";
  throw new CotenantError(
    code,
    `committed as ${short(commit)}, but ${printable(push.remote, 100)} ${what}: ${push.why}`,
    {
      hint:
        push.result === "failed" && push.hint !== undefined
          ? push.hint
          : `${ERRORS[code].hint}; to push it later: cotenant publish --branch ${shellWord(branchName(ref))} --push --remote ${shellWord(push.remote)}`,
      data: { commit, ref, publish_id: publishId, push: push.result, remote: push.remote, why: push.why },
    },
  );
}

function output(context: Context, published: Published, wantsRelease: boolean): Output {
  const { ref, commit, paths, changed, replayed, push, released, tidied, recovered } = published;
  return {
    data: {
      publish_id: published.publishId,
      branch: branchName(ref),
      ref,
      commit,
      parent: published.parent,
      base: published.base,
      paths,
      changed,
      replayed,
      merged: published.merged,
      retries: published.retries,
      cas_failures: published.casFailures,
      checks: published.checks.map((one) => ({
        command: one.command,
        exit_status: one.exitStatus,
        duration_ms: one.durationMs,
      })),
      push: push === null ? null : { remote: push.remote, result: push.result },
      released: released.map((lease) => leaseJson(lease)),
      settled: tidied,
      recovered: recovered.map(({ intent, fate }) => ({
        publish_id: intent.publishId,
        agent_id: intent.agentId,
        ref: intent.ref,
        commit: intent.new,
        fate,
      })),
    },
    text: context.quiet
      ? (commit ?? "")
      : [...textLines(published), ...releasedLines(published, wantsRelease)].join("\n"),
  };
}

function textLines(published: Published): string[] {
  const { ref, commit, paths, changed, replayed, merged, retries } = published;
  const branch = printable(branchName(ref), 200);
  if (replayed) return [`already done: ${branch} has ${short(commit)}`, ...afterwards(published)];
  if (!changed) return [idle(branch, commit), ...afterwards(published)];
  const lines = [
    `published ${short(commit)} to ${branch}: ${count(paths.length, "path")}`,
    ...pathLines(paths),
  ];
  if (merged) lines.push("  merged onto what others had published there meanwhile");
  if (retries > 0) lines.push(`  after ${count(retries, "try", "tries")} that others were faster at`);
  return [...lines, ...afterwards(published)];
}

function idle(branch: string, commit: string | null): string {
  return commit === null
    ? `nothing to do: the base has it already, and there is no ${branch}`
    : `nothing to do: ${branch} has it already (${short(commit)})`;
}

/** What was done besides, also where the branch had it all already. */
function afterwards({ push, tidied }: Published): string[] {
  const lines: string[] = [];
  if (push !== null) lines.push(`  pushed to ${printable(push.remote, 100)}`);
  for (const { path, outcome } of tidied)
    lines.push(
      outcome === "restored" || outcome === "removed"
        ? `  ${outcome} ${printable(path, 200)} in the working tree`
        : `  left ${printable(path, 200)} in the working tree: ${outcome === "staged" ? "it is staged" : "it is not what was published"}`,
    );
  return lines;
}

/** Only what covered a change is given back: whoever asked for it hears also that there was nothing. */
function releasedLines({ released }: Published, wantsRelease: boolean): string[] {
  if (released.length > 0) return [`  released ${count(released.length, "lease")}`];
  return wantsRelease
    ? ["  released nothing: no lease covered a change; 'cotenant status' shows what you hold"]
    : [];
}

const MOST_SHOWN = 20;

function pathLines(paths: readonly PublishedPath[]): string[] {
  const left = paths.length - MOST_SHOWN;
  return [
    ...paths.slice(0, MOST_SHOWN).map(({ path, change }) => `  ${change} ${printable(path, 200)}`),
    ...(left > 0 ? [`  … and ${left} more`] : []),
  ];
}

function short(commit: string | null): string {
  return commit?.slice(0, 12) ?? "nothing";
}

function previewOutput(context: Context, seen: Preview): Output {
  const failed = seen.checks.find(({ error }) => error !== null)?.error ?? null;
  const checks = seen.checks.map(({ name, passed, error }) => ({
    name,
    passed,
    code: error?.code ?? null,
    message: error?.message ?? null,
  }));
  const words = { true: "ok", false: "refused", null: "not looked at" };
  const lines = [
    ...(seen.diff === "" ? [] : shownLines(context.terminal, "what would change", seen.diff, seen.isCut)),
    ...pathLines(seen.paths),
    ...checks.map(({ name, passed, code, message }) =>
      passed === false
        ? `  ${name}: ${message} (${code})`
        : `  ${name}: ${words[String(passed) as "true" | "null"]}`,
    ),
    failed === null
      ? seen.paths.length === 0
        ? "nothing to do: the branch has it already"
        : `would publish ${count(seen.paths.length, "path")} to ${printable(branchName(seen.ref), 200)}; nothing was written`
      : `would be refused; next: ${failed.hint}`,
  ];
  return {
    data: {
      branch: branchName(seen.ref),
      ref: seen.ref,
      base: seen.base,
      parent: seen.parent,
      paths: seen.paths,
      diff: seen.diff,
      diff_cut: seen.isCut,
      checks,
      would_publish: failed === null && seen.paths.length > 0,
    },
    text: lines.join("\n"),
    ...(failed === null ? {} : { exit: failed.exit }),
  };
}
