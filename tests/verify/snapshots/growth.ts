import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import type { Prng } from "../../../testing/simulator/prng";

/** Names are bytes, one character for each. */
const NAMES = [
  ...[
    "a",
    "b.txt",
    "c.ts",
    "with space",
    "UPPER",
    "upper",
    "-dash",
    "#hash",
    'quote"s',
    "back\\slash",
    "tab\there",
  ],
  ...[
    "new\nline",
    "d\xc3\xa9j\xc3\xa0",
    "de\xcc\x81ja",
    "\xff\xfe",
    "\xc0",
    "x".repeat(120),
    "b-txt",
    "b0",
    "b.txt.d",
  ],
  ...[
    "deep",
    "src",
    "lib",
    "skipped.log",
    "out.txt",
    ".hidden",
    ".gitignore",
    ".gitattributes",
    "C:",
    "*",
    "?",
  ],
];
const MODES = [0o644, 0o755, 0o600, 0o444, 0o700, 0o640, 0o664, 0o777, 0o500];
const DIRECTORY_MODES = [0o755, 0o755, 0o755, 0o700, 0o775, 0o555];
const RULES = ["*.log\n", "build/\n", "*\n", "!keep.log\n", "/a\n", "deep/\n", "# nothing\n", "src/*.ts\n"];
const ATTRIBUTES = [
  "* text=auto\n",
  "*.txt text eol=crlf\n",
  "* ident\n",
  "*.ts filter=spoil\n",
  "* -text\n",
];

/** Changes a real tree at random, as agents, editors and build tools do, and as they should not. */
export class Gardener {
  readonly #chance: Prng;
  readonly #root: string;
  /** What was done, for whoever has to find out. */
  readonly deeds: string[] = [];

  constructor(chance: Prng, root: string) {
    this.#chance = chance;
    this.#root = root;
  }

  change(times: number): void {
    for (let n = 0; n < times; n++) {
      const deed = this.#chance.pick(DEEDS);
      try {
        this.#do(deed);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        // What cannot be done to this tree is left undone.
        if (
          ![
            "EEXIST",
            "ENOTDIR",
            "EISDIR",
            "ENOTEMPTY",
            "ENOENT",
            "EACCES",
            "EINVAL",
            "EPERM",
            "ELOOP",
          ].includes(code ?? "")
        )
          throw error;
      }
    }
  }

  #do(deed: (typeof DEEDS)[number]): void {
    const path =
      deed === "write" || deed === "directory" || deed === "link" ? this.#fresh() : this.#existing();
    if (path === null) return;
    this.deeds.push(`${deed} ${JSON.stringify(path)}`);
    const at = this.#at(path);
    switch (deed) {
      case "write":
        this.#makeParents(path);
        fs.writeFileSync(at, this.#content(path), { flag: "wx", mode: this.#chance.pick(MODES) });
        break;
      case "overwrite":
        this.#overwrite(path);
        break;
      case "append":
        fs.appendFileSync(at, this.#chance.bytes(this.#chance.between(1, 50)));
        break;
      case "chmod":
        this.#chmod(at);
        break;
      case "remove":
        fs.rmSync(at, { recursive: true, force: true });
        break;
      case "directory":
        this.#makeParents(path);
        fs.mkdirSync(at);
        break;
      case "link":
        this.#makeParents(path);
        fs.symlinkSync(Buffer.from(this.#chance.pick(TARGETS), "latin1"), at);
        break;
      case "rename":
        this.#rename(path);
        break;
      case "swap kind":
        this.#swap(path);
        break;
      default:
        this.#git(deed);
    }
  }

  #chmod(at: Buffer): void {
    const stat = fs.lstatSync(at);
    if (!stat.isSymbolicLink())
      fs.chmodSync(at, this.#chance.pick(stat.isDirectory() ? DIRECTORY_MODES : MODES));
  }

  #rename(path: string): void {
    const to = this.#fresh();
    if (to.startsWith(`${path}/`)) return;
    this.#makeParents(to);
    fs.renameSync(this.#at(path), this.#at(to));
  }

  #swap(path: string): void {
    const at = this.#at(path);
    const isDirectory = fs.lstatSync(at).isDirectory();
    fs.rmSync(at, { recursive: true, force: true });
    if (isDirectory) fs.writeFileSync(at, this.#content(path));
    else fs.mkdirSync(at);
  }

  /** The same size and the same time as before, where chance wants it: nothing but the content tells. */
  #overwrite(path: string): void {
    const at = this.#at(path);
    const stat = fs.lstatSync(at);
    if (!stat.isFile()) return;
    fs.chmodSync(at, stat.mode | 0o200);
    const sly = this.#chance.chance(0.5);
    fs.writeFileSync(at, sly ? this.#chance.bytes(stat.size) : this.#content(path));
    if (sly) fs.utimesSync(at, stat.atimeMs / 1000, stat.mtimeMs / 1000);
    fs.chmodSync(at, stat.mode & 0o777);
  }

  #git(deed: "stage" | "commit"): void {
    const run = (...args: string[]) =>
      execFileSync("git", args, { cwd: this.#root, stdio: ["ignore", "ignore", "ignore"] });
    try {
      run("-c", "filter.spoil.clean=tr a-z A-Z", "add", this.#chance.chance(0.5) ? "--all" : ".");
      if (deed === "commit") run("commit", "--quiet", "--no-verify", "--allow-empty", "--message", "fuzz");
    } catch {
      // A tree that Git cannot add, such as one with a file that it may not read.
    }
  }

  #content(path: string): Uint8Array {
    const chance = this.#chance;
    if (path.endsWith(".gitignore")) return Buffer.from(chance.pick(RULES));
    if (path.endsWith(".gitattributes")) return Buffer.from(chance.pick(ATTRIBUTES));
    if (chance.chance(0.2))
      return Buffer.from(chance.pick(["", "x\r\ny\r\n", "$Id$\n", "a\nb\n", "\0\0", "\r"]));
    // Beyond 8 MiB Git reads it.
    if (chance.chance(0.02)) return Buffer.alloc(9 << 20, chance.bytes(60));
    return chance.bytes(chance.between(0, 200));
  }

  #fresh(): string {
    const parts = Array.from({ length: this.#chance.between(1, 3) }, () => this.#chance.pick(NAMES));
    return parts.join("/");
  }

  #existing(): string | null {
    const all: string[] = [];
    const visit = (prefix: string) => {
      const names = fs.readdirSync(this.#at(prefix === "" ? "." : prefix), {
        encoding: "latin1" as BufferEncoding,
      });
      for (const name of names.sort()) {
        if (prefix === "" && (name === ".git" || name === ".cotenant")) continue;
        const path = prefix === "" ? name : `${prefix}/${name}`;
        all.push(path);
        if (fs.lstatSync(this.#at(path)).isDirectory()) visit(path);
      }
    };
    visit("");
    return all.length === 0 ? null : this.#chance.pick(all);
  }

  #makeParents(path: string): void {
    const parent = path.slice(0, Math.max(0, path.lastIndexOf("/")));
    if (parent !== "") fs.mkdirSync(this.#at(parent), { recursive: true });
  }

  #at(path: string): Buffer {
    return Buffer.from(`${Buffer.from(this.#root).toString("latin1")}/${path}`, "latin1");
  }
}

const TARGETS = ["a", "../outside", "/etc/passwd", "missing", "deep/a", ".", "\xff\xfe", "x".repeat(200)];
const DEEDS = [
  ...["write", "write", "write", "write", "overwrite", "overwrite", "append", "chmod", "remove", "directory"],
  ...["link", "rename", "swap kind", "stage", "commit"],
] as const as readonly (
  | "write"
  | "overwrite"
  | "append"
  | "chmod"
  | "remove"
  | "directory"
  | "link"
  | "rename"
  | "swap kind"
  | "stage"
  | "commit"
)[];
