import { isGiven, look, operands, optionValues, take, takeEntry, type Written } from "./arguments";
import { gitWrites, isHarmlessGit } from "./git";
import { singleOf, type Value } from "./words";

/** What a program with these arguments may write. Programs that are not here are only compared afterwards. */
export function programWrites(name: string, args: readonly Value[]): Written[] {
  const reading = PROGRAMS[name];
  return reading === undefined ? [] : reading(args);
}

/** Whether a program whose writes are not listed is known to write no files of a worktree. */
export function isHarmless(name: string, args: readonly Value[]): boolean {
  if (name === "git") return isHarmlessGit(args);
  if (!HARMLESS.has(name)) return false;
  // Their scripts and options may write files and start programs.
  const suspicious = SUSPICIOUS[name];
  return suspicious === undefined || args.every((arg) => !suspicious.test(singleOf(arg) ?? ""));
}

const HARMLESS: ReadonlySet<string> = new Set(
  "[ : ag alias awk basename bat bg cal cat cd cksum cmp column comm command cut date declare df diff dirname du echo egrep env exit export expr false fd fg fgrep file find fold free getent grep groups head hexdump history hostname id jobs join jq kill less let local ls lsof man md5sum mkdir more nl nproc od paste pgrep popd printenv printf ps pushd pwd read readlink realpath return rg rmdir sed seq set sha1sum sha256sum shift shopt sleep sort stat strings sum tac tail test time top tr trap tree true tty type uname uniq unset uptime wait wc whereis which who whoami xxd yes".split(
    " ",
  ),
);

const SUSPICIOUS: Readonly<Record<string, RegExp>> = {
  awk: /[>|]|system/,
  sed: /(?:^|[\d/;{}$!])[we](?:\s|$)/,
  fd: /^(?:-[xX]|--exec)/,
};

type Reading = (args: readonly Value[]) => Written[];

const PROGRAMS: Readonly<Record<string, Reading>> = {
  git: gitWrites,
  tee: (args) => operands(args).map(take),
  touch: (args) => operands(args, ["-d", "-r", "-t", "--date", "--reference"]).map(take),
  truncate: (args) => operands(args, ["-s", "-r", "--size", "--reference"]).map(take),
  rm: (args) => operands(args).map(takeEntry),
  unlink: (args) => operands(args).map(takeEntry),
  shred: (args) => operands(args, ["-n", "-s"]).map(take),
  chmod: (args) => operands(args).slice(1).map(take),
  sponge: (args) => operands(args).map(take),
  ed: (args) => operands(args).map(take),
  ex: (args) => operands(args, ["-c", "-s"]).map(take),
  cp: copied,
  install: (args) => [...placed(args).put],
  ln: (args) => linked(args, isSet(args, "s", "--symbolic")),
  link: (args) => linked(args, false),
  mv: (args) => {
    const { sources, put } = placed(args);
    return [
      ...sources.map((value): Written => ({ ...takeEntry(value), brings: "unless-file" })),
      ...put.map((target): Written => ({ ...target, isEntry: true })),
    ];
  },
  rsync: (args) =>
    operands(args, ["-e", "--exclude", "--include", "--files-from"])
      .slice(-1)
      .map((value) => ({ ...look(value), brings: "always" })),
  dd: (args) => valuesAfter(args, "of=").map(take),
  sort: (args) => optionValues(args, ["-o", "--output"]).map(take),
  curl: (args) => optionValues(args, ["-o", "--output"]).map(take),
  wget: (args) => optionValues(args, ["-O", "--output-document"]).map(take),
  sed: (args) => (hasInPlace(args) ? scripted(args, ["-e", "--expression", "-f", "--file"], ["-l"]) : []),
  perl: (args) => (hasInPlace(args) ? scripted(args, ["-e", "-E"], []) : []),
  ruby: (args) => (hasInPlace(args) ? scripted(args, ["-e"], []) : []),
  yq: (args) => (hasInPlace(args) ? scripted(args, [], []) : []),
  awk: awkInPlace,
  gawk: awkInPlace,
  patch: (args) => [
    ...operands(args, PATCH_VALUED).slice(0, 1).map(take),
    ...optionValues(args, ["-o", "--output"]).map(take),
  ],
  uniq: (args) => operands(args, ["-f", "-s", "-w"]).slice(1).map(take),
  xxd: (args) => operands(args, ["-c", "-g", "-l", "-n", "-o", "-s"]).slice(1).map(take),
  tree: (args) => optionValues(args, ["-o"]).map(take),
  gofmt: (args) => (isGiven(args, "-w") ? operands(args).map(take) : []),
  prettier: (args) => (isGiven(args, "--write") || isGiven(args, "-w") ? operands(args).map(take) : []),
  find: (args) => [
    ...(changesFiles(args) ? startsOf(args).map((value) => found(value, args)) : []),
    ...optionValues(args, ["-fprint", "-fprint0", "-fprintf", "-fls"]).map(take),
  ],
};

const PATCH_VALUED = ["-i", "-p", "-d", "-o", "-r", "-F", "-B", "-D", "-V", "-Y", "-z"];

function awkInPlace(args: readonly Value[]): Written[] {
  return args.some((arg) => singleOf(arg) === "inplace") ? scripted(args, ["-f"], ["-i", "-v"]) : [];
}

function valuesAfter(args: readonly Value[], start: string): Value[] {
  return args.flatMap((arg): Value[] => {
    const text = singleOf(arg);
    return text?.startsWith(start) ? [[text.slice(start.length)]] : [];
  });
}

interface Placed {
  readonly sources: readonly Value[];
  /** Where they go: what `-t` names, or the last of them. */
  readonly put: readonly Written[];
}

function placed(args: readonly Value[]): Placed {
  // Also behind others, as in `-rt <directory>`.
  const letters = args.map((arg) => singleOf(arg) ?? "").filter((text) => /^-[a-zA-Z]+t$/.test(text));
  const into = optionValues(args, ["-t", "--target-directory", ...letters]);
  const rest = operands(args, ["-t", "--target-directory", ...letters, "-S", "-m", "-o", "-g"]);
  const sources = into.length > 0 ? rest : rest.slice(0, -1);
  const target = into[0] ?? rest.at(-1);
  if (target === undefined || (sources.length === 0 && into.length === 0)) return { sources: rest, put: [] };
  const replaces = isSet(args, "T", "--no-target-directory") ? ({ replaces: "any" } as const) : {};
  return { sources, put: [{ value: target, names: sources, mode: "take", ...replaces }] };
}

/** A letter among short options, before the value of one, or a long option. */
function isSet(args: readonly Value[], letter: string, long: string): boolean {
  const short = new RegExp(`^-[^-tS]*${letter}`);
  return args.some((arg) => singleOf(arg) === long || short.test(singleOf(arg) ?? ""));
}

/** Options of `cp` with which it copies what is named, and the content of links. */
const PLAIN_COPY = /^-[bfinptuvxT]+$/;

function copied(args: readonly Value[]): Written[] {
  const isSymbolic = isSet(args, "s", "--symbolic-link");
  const put = isSymbolic || isSet(args, "l", "--link") ? linked(args, isSymbolic) : [...placed(args).put];
  const isPlain = args.every((arg) => !/^-./.test(singleOf(arg) ?? "") || PLAIN_COPY.test(singleOf(arg)!));
  return isPlain ? put : put.map((write) => ({ ...write, brings: "always" }));
}

/** Whoever gives a file a second name can write it by that, so that it counts as written. */
function linked(args: readonly Value[], isSymbolic: boolean): Written[] {
  const { sources, put } = placed(args);
  // `ln -s <target>` puts it where the shell stands.
  const targets = put.length > 0 ? put : [{ value: ["."], names: sources, mode: "take" as const }];
  const from = isSet(args, "r", "--relative") ? "from-shell" : "from-link";
  const links = targets.map(
    (target): Written => ({
      ...(isSet(args, "n", "--no-dereference") ? { replaces: "link" } : {}),
      ...target,
      isEntry: true,
      link: isSymbolic ? from : "second",
    }),
  );
  return sources.length === 0 ? [] : isSymbolic ? links : [...sources.map(take), ...links];
}

/** `-i`, `-i.bak`, `-pi`, `-Ei`, `--in-place`. */
function hasInPlace(args: readonly Value[]): boolean {
  return args.some((arg) => /^(?:-[a-zA-Z]*i.*|--in-place.*)$/.test(singleOf(arg) ?? ""));
}

/** Files after a script, which is the first operand unless an option has brought it: `-e …`, `-pe …`. */
function scripted(args: readonly Value[], scripts: readonly string[], valued: readonly string[]): Written[] {
  const letters = scripts.filter((option) => option.length === 2).map((option) => option[1]);
  const cluster = new RegExp(`^-[a-zA-Z]*[${letters.join("")}]$`);
  const texts = args.map((arg) => singleOf(arg) ?? "");
  const bringing = texts.filter(
    (text) =>
      cluster.test(text) || scripts.some((option) => text === option || text.startsWith(`${option}=`)),
  );
  // BSD's `-i ''` takes a suffix of its own.
  const hasSuffix = texts[texts.indexOf("-i") + 1] === "" && texts.includes("-i");
  const rest = operands(args, [...scripts, ...valued, ...bringing, ...(hasSuffix ? ["-i"] : [])]);
  return (bringing.length > 0 ? rest : rest.slice(1)).map(take);
}

const RUNNING = /^-(?:exec|execdir|ok|okdir)$/;

function changesFiles(args: readonly Value[]): boolean {
  const words = args.map((arg) => singleOf(arg) ?? "");
  if (words.includes("-delete")) return true;
  return words.some((word, at) => {
    if (!RUNNING.test(word)) return false;
    const end = words.findIndex((other, i) => i > at && (other === ";" || other === "+"));
    const [program, ...inner] = args.slice(at + 1, end === -1 ? undefined : end);
    const name = (singleOf(program ?? null) ?? "").replace(/^.*\//, "");
    return programWrites(name, inner).length > 0 || !isHarmless(name, inner);
  });
}

/** What `-exec` runs may write elsewhere, too. */
function found(start: Value, args: readonly Value[]): Written {
  const runsOthers = args.some((arg) => RUNNING.test(singleOf(arg) ?? ""));
  return runsOthers ? { ...look(start), brings: "always" } : look(start);
}

function startsOf(args: readonly Value[]): Value[] {
  const first = args.findIndex((arg) => /^[-(!]/.test(singleOf(arg) ?? ""));
  const starts = args.slice(0, first === -1 ? undefined : first);
  return starts.length === 0 ? [["."]] : [...starts];
}
