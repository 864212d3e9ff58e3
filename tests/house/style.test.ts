import { readFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { filesBelow, ROOT, type SourceFile } from "./source";

const LINES = { most: 500, ask: 400 };

const files = filesBelow(".");
const sources = files.filter(({ path }) => path.startsWith("src/"));
const tests = files.filter(({ path }) => path.startsWith("tests/") && path.endsWith(".ts"));

interface LockedPackage {
  readonly resolved?: string;
  readonly link?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const lock: { packages: Record<string, LockedPackage> } = JSON.parse(
  readFileSync(join(ROOT, "package-lock.json"), "utf8"),
);
const locked = Object.entries(lock.packages);

/** `path:line: what was found` for every match; the pattern needs the flag `g`. */
function findings(
  among: readonly SourceFile[],
  pattern: RegExp,
  isFine = (_match: string) => false,
): string[] {
  return among.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)]
      .filter(([match]) => !isFine(match))
      .map((match) => `${path}:${text.slice(0, match.index).split("\n").length}: ${match[0].trim()}`),
  );
}

const lineCount = (text: string) => text.split("\n").length - (text.endsWith("\n") ? 1 : 0);

const LEFT_OPEN = /\b(?:TODO|FIXME|XXX)\b/g;
/** `runIf` is for what one machine cannot do; npm test names what it leaves out, and as root on Linux forbids it. */
const NOT_RUN =
  /\b(?:it|test|describe|suite|bench)(?:\.\w+)*\.(?:only|skip|todo|fails)\b|\bx(?:it|describe)\(/g;
const IPV4 = /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])/g;
const URL_HOST = /\b(?:https?|git|ssh|wss?):\/\/(?:[^\s/"'`@]*@)?(?:\[[^\]]*\]|[^\s/:"'`)\\]+)/g;

/** Loopback, or a name that RFC 2606 promises never to exist, or one put in at run time. */
function isNowhere(address: string): boolean {
  const host = address.replace(/^\w+:\/\/(?:[^@]*@)?/, "");
  return (
    /^127\./.test(host) ||
    host === "localhost" ||
    host === "[::1]" ||
    host.startsWith("$") ||
    /(?:^|\.)(?:invalid|test|example|example\.(?:com|org|net))$/.test(host)
  );
}

const escaped = (text: string) => text.replace(/[.*+?^$()|[\]{}\\]/g, "\\$&");

/** A person's home, this checkout or this account, each of which exists on one machine only. */
function machinePaths(): RegExp {
  const here = [ROOT, userInfo().homedir].filter((path) => path.split(/[/\\]/).filter(Boolean).length > 1);
  const homes = ["/home/[a-z][\\w.-]*/", "/Users/[A-Za-z][\\w.-]*/", "/root/", "[A-Z]:\\\\Users\\\\"];
  return new RegExp(
    `(?<![\\w.])(?:${[...homes, ...here.map((path) => `${escaped(path)}(?![\\w-])`)].join("|")})`,
    "g",
  );
}

describe("the code base", () => {
  it("has kebab-case names in src, tests, scripts and bench", () => {
    // What people read has a name in capitals, there as everywhere.
    const isPaper = (path: string) => path === "bench/RESULTS.md" || path.startsWith("testing/corpora/");
    const named = files.filter(({ path }) => /^(src|tests|scripts|bench)\//.test(path) && !isPaper(path));
    const odd = named.filter(
      ({ path }) => !/^(?:[a-z0-9]+(?:-[a-z0-9]+)*\/)*[a-z0-9]+(?:[-.][a-z0-9]+)*$/.test(path),
    );
    expect(odd.map(({ path }) => path)).toEqual([]);
  });

  it(`has no source file over ${LINES.most} lines`, () => {
    const sized = sources
      .map(({ path, text }) => ({ path, lines: lineCount(text) }))
      .filter(({ lines }) => lines > LINES.ask);
    const long = sized.sort((a, b) => b.lines - a.lines).map(({ path, lines }) => `${path}: ${lines} lines`);
    if (long.length > 0)
      console.warn(`over ${LINES.ask} lines; has one become two things?\n${long.join("\n")}`);
    expect(sized.filter(({ lines }) => lines > LINES.most)).toEqual([]);
  });

  it("leaves nothing open in src", () => {
    expect(findings(sources, LEFT_OPEN)).toEqual([]);
  });

  it("runs every test it has", () => {
    expect(findings(tests, NOT_RUN)).toEqual([]);
  });

  it("talks to nobody but this machine in its tests", () => {
    const others = tests.filter(({ path }) => path !== "tests/house/style.test.ts");
    expect([...findings(others, IPV4, isNowhere), ...findings(others, URL_HOST, isNowhere)]).toEqual([]);
  });

  it("names no path of one person's machine", () => {
    const others = files.filter(({ path }) => path !== "tests/house/style.test.ts");
    expect(findings(others, machinePaths())).toEqual([]);
  });

  it("has no download addresses in its lock file", () => {
    expect(locked.length).toBeGreaterThan(10);
    // A link names a folder of this project.
    const isAddress = ({ resolved, link }: (typeof locked)[number][1]) =>
      resolved !== undefined && link !== true;
    expect(locked.filter(([, entry]) => isAddress(entry))).toEqual([]);
  });

  // Where the registry at hand lacks some, npm leaves them out without a word, and then `npm ci` fails for everybody.
  it("has the builds for every platform in its lock file", () => {
    const present = new Set(locked.map(([path]) => path));
    const missing = locked.flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) => !present.has(`node_modules/${name}`) && !present.has(`${path}/node_modules/${name}`),
      ),
    );
    expect(missing).toEqual([]);
  });
});

describe("the rules above", () => {
  const one = (text: string): SourceFile[] => [{ path: "a.ts", text }];
  const caught = (pattern: RegExp, text: string) => findings(one(text), pattern).length;

  it.each([
    ["it", "only"],
    ["describe", "skip"],
    ["it.concurrent", "todo"],
    ["test", "fails"],
  ])("would catch %s.%s", (called, how) => {
    expect(caught(NOT_RUN, `  ${called}.${how}("…")`)).toBe(1);
  });

  it("would catch foreign addresses, and lets loopback and reserved names be", () => {
    const foreign = [
      "10.0.0.1",
      "https://registry.npmjs.org/x",
      "http://8.8.8.8:80",
      "ssh://git@github.com/a/b",
    ];
    for (const text of foreign) {
      expect(
        [...findings(one(text), IPV4, isNowhere), ...findings(one(text), URL_HOST, isNowhere)],
        text,
      ).not.toEqual([]);
    }
    const home = [
      "127.0.0.1",
      "http://localhost:80/",
      "http://[::1]:9/",
      "git://example.invalid/x",
      "http://$" + "{host}/",
    ];
    for (const text of home) {
      expect(
        [...findings(one(text), IPV4, isNowhere), ...findings(one(text), URL_HOST, isNowhere)],
        text,
      ).toEqual([]);
    }
  });

  it("would catch a home, and lets other absolute paths be", () => {
    expect(caught(machinePaths(), 'cd "/home/ann/code"')).toBe(1);
    expect(caught(machinePaths(), "/Users/ann/code")).toBe(1);
    expect(caught(machinePaths(), `${ROOT}/src`)).toBe(1);
    expect(caught(machinePaths(), "/tmp/x /etc/passwd ~/x ../home/x/")).toBe(0);
  });

  it("would catch what is left open", () => {
    expect(caught(LEFT_OPEN, "// TODO: later")).toBe(1);
    expect(caught(LEFT_OPEN, "const TODOS = 1; // fixme-ish")).toBe(0);
  });
});
