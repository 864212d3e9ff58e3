import { existsSync, readdirSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { describe, expect, it } from "vitest";
import { filesBelow, ROOT, type SourceFile } from "../house/source";

const documents = filesBelow(".").filter(({ path }) => /^(?:[A-Z]+|docs\/.*)\.md$/.test(path));
const FOLDERS = "bench|bin|docs|schemas|scripts|src|testing|tests";
const IN_SRC = readdirSync(join(ROOT, "src")).join("|");
const PROGRAMS = filesBelow(".")
  .map(({ path }) => `/${path}`)
  .filter((path) => /\.m?[jt]s$/.test(path));
/** A pattern for names, not a name. */
const EXAMPLE = "kebab-case.ts";

/** What GitHub makes of a heading. */
function anchorsOf(markdown: string): string[] {
  const prose = markdown.replace(/^```[\s\S]*?^```$/gm, "");
  return [...prose.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replace(/\s/g, "-"),
  );
}

function brokenLinks({ path, text }: SourceFile, all: readonly SourceFile[]): string[] {
  return [...text.matchAll(/\]\((?!\w+:)([^)\s]*)\)/g)].flatMap(([, link]) => {
    const [target = "", anchor] = link!.split("#");
    const file = target === "" ? path : posix.join(dirname(path), target);
    if (!existsSync(join(ROOT, file))) return [`${path}: ${link}`];
    const other = all.find((document) => document.path === file);
    const isThere = anchor === undefined || (other !== undefined && anchorsOf(other.text).includes(anchor));
    return isThere ? [] : [`${path}: ${link}: no such heading`];
  });
}

/** `src/store/store.ts`, `store/store.ts`, `store.ts`, `docs/adr/`: files and folders that prose names. */
function missingFiles({ path, text }: SourceFile): string[] {
  const named = [
    ...[...text.matchAll(new RegExp(`\`((?:${FOLDERS})/[\\w./-]*)\``, "g"))].map(([, name]) => name!),
    ...[...text.matchAll(new RegExp(`\`((?:${IN_SRC})/[\\w./-]+\\.ts)\``, "g"))].map(
      ([, name]) => `src/${name}`,
    ),
  ];
  const short = [...text.matchAll(/`([\w.-]+\.(?:ts|mjs))`/g)].map(([, name]) => name!);
  return [
    ...named.filter((name) => !existsSync(join(ROOT, name))),
    ...short.filter((name) => name !== EXAMPLE && !PROGRAMS.some((program) => program.endsWith(`/${name}`))),
  ].map((name) => `${path}: ${name}`);
}

describe("the documents", () => {
  it("link to files and headings that exist", () => {
    expect(documents.length).toBeGreaterThan(10);
    expect(documents.flatMap((document) => brokenLinks(document, documents))).toEqual([]);
  });

  it("name files that exist", () => {
    expect(documents.flatMap(missingFiles)).toEqual([]);
  });

  it("are all in their index", () => {
    const index = documents.find(({ path }) => path === "docs/README.md")?.text ?? "";
    const pages = documents.filter(
      ({ path }) => /^docs\/[A-Z]+\.md$/.test(path) && path !== "docs/README.md",
    );
    expect(pages.length).toBeGreaterThan(10);
    expect(
      pages.map(({ path }) => posix.basename(path)).filter((page) => !index.includes(`](${page})`)),
    ).toEqual([]);
  });

  it("list every decision", () => {
    const records = documents.filter(({ path }) => /^docs\/adr\/\d/.test(path));
    const list = documents.find(({ path }) => path === "docs/adr/README.md")?.text ?? "";
    const unlisted = records.filter(({ path }) => !list.includes(`(${posix.basename(path)})`));
    expect(unlisted.map(({ path }) => path)).toEqual([]);
    const rows = records.map(({ path, text }) => {
      const [, number, title] = /^# (\d{4}): (.+)$/m.exec(text)!;
      return `| [${number}](${posix.basename(path)}) | ${title} |`;
    });
    expect(list.match(/^\| \[\d{4}\].*$/gm)).toEqual([...rows].sort());
    const sections = ["## Context", "## Decision", "## Consequences", "## Cost at start-up"];
    const short = records.filter(
      ({ path, text }) => !path.includes("0008") && !sections.every((s) => text.includes(s)),
    );
    expect(short.map(({ path }) => path)).toEqual([]);
  });
});

describe("the rules above", () => {
  const page = (text: string): SourceFile => ({ path: "docs/ERRORS.md", text });

  it.each(["[a](nowhere.md)", "[a](#nothing)", "[a](FORMATS.md#nothing)"])("see %s", (text) => {
    expect(brokenLinks(page(`# Page\n${text}`), documents)).toHaveLength(1);
  });

  it("leave good links alone", () => {
    const good = page("# Some page: one\n[a](#some-page-one) [b](../README.md) [c](https://example.org/x)");
    expect(brokenLinks(good, [good, ...documents])).toEqual([]);
  });

  it.each(["`src/nowhere.ts`", "`store/nowhere.ts`", "`nowhere.ts`", "`tests/nowhere/`"])(
    "see %s",
    (text) => {
      expect(missingFiles(page(text))).toHaveLength(1);
    },
  );
});
