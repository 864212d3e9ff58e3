import {
  type Command,
  type CommandNode,
  type CompoundList,
  forEachChild,
  parse,
  type Redirection,
  type Statement,
  type SyntaxNode,
  type Word,
} from "unbash";
import { shellQuoted } from "../../../kernel/printing";
import { patchedPaths } from "../patch";
import { operands, type Written } from "./arguments";
import { gitDirectories, unknownVerb } from "./git";
import { isHarmless, programWrites } from "./programs";
import { type Unwrapped, unwrapped } from "./unwrap";
import { copyOf, type FunctionBody, readingsOf, type Scope, singleOf, type Value } from "./words";

/** One thing that a command line may write, and where its shell stands by then. */
export interface ShellWrite extends Written {
  readonly cwd: string | null;
}

export interface Reading {
  readonly writes: readonly ShellWrite[];
  /** Everything in it is known to write nothing but what is listed. */
  readonly isKnown: boolean;
  /** Subcommands of Git that may be aliases. */
  readonly verbs: readonly string[];
}

type Runnable = Statement["command"] | CommandNode | CompoundList;

/** Longer ones are programs, not commands; what they did is seen afterwards. A file in a here-document may be long. */
const LONGEST = 1 << 20;
const DEEPEST = 16;
/** Brackets that stay open; the parser takes longer with each of them, up to minutes. */
const MOST_OPEN = 300;
/** Functions that call each other can stand for any number of commands. */
const MOST_COMMANDS = 20_000;

export interface Start {
  readonly cwd: string;
  readonly home: string | null;
  /** The root of the worktree around `cwd`, for those who ask Git for it. */
  readonly root?: string | null;
  /** Git's aliases, for those who use any. */
  readonly aliases?: ReadonlyMap<string, string>;
}

/** What a command line may write, as far as that can be read from it. */
export function readCommand(command: string, { cwd, home, root = null, aliases }: Start): Reading {
  const walker = new Walker(aliases ?? new Map());
  if (command.length > LONGEST || isTooDeep(command)) return { writes: [], isKnown: false, verbs: [] };
  const variables = new Map<string, Value>();
  walker.script(command, { cwd, home, root, before: null, stack: [], variables, functions: new Map() });
  const isKnown = walker.isKnown && !mayLeadElsewhere(walker.writes);
  return { writes: walker.writes, isKnown, verbs: [...walker.verbs] };
}

/** A link that a command makes may lead whatever else it writes anywhere; in a loop also what stands before it. */
function mayLeadElsewhere(writes: readonly ShellWrite[]): boolean {
  const written = writes.filter(({ use }) => use === undefined);
  if (!written.some(({ link }) => link !== undefined)) return false;
  return everyOne(written.map(({ value }) => value))?.length !== 1;
}

class Walker {
  readonly writes: ShellWrite[] = [];
  isKnown = true;
  readonly verbs = new Set<string>();
  readonly #aliases: ReadonlyMap<string, string>;
  #depth = 0;
  #commands = 0;

  constructor(aliases: ReadonlyMap<string, string>) {
    this.#aliases = aliases;
  }

  script(source: string, scope: Scope): void {
    if (this.#depth >= DEEPEST) {
      this.isKnown = false;
      return;
    }
    this.#depth++;
    try {
      const { commands, errors } = parse(source);
      if (errors !== undefined && errors.length > 0) this.isKnown = false;
      this.#statements(commands, scope);
    } catch {
      this.isKnown = false;
    } finally {
      this.#depth--;
    }
  }

  #statements(statements: readonly Statement[], scope: Scope): void {
    for (const { command, background } of statements)
      this.#node(command, background === true ? copyOf(scope) : scope);
  }

  #node(node: Runnable, scope: Scope): void {
    switch (node.type) {
      case "Command":
        this.#command(node, scope);
        break;
      case "AndOr":
        for (const [i, part] of node.commands.entries()) {
          // What follows `&&` is taken to run; what follows `||` is not, and where it leads to is unknown then.
          if (i > 0 && node.operators[i - 1] === "||") this.#branch(scope, part);
          else this.#node(part, scope);
        }
        break;
      case "Pipeline":
        for (const part of node.commands) this.#node(part, node.commands.length > 1 ? copyOf(scope) : scope);
        break;
      case "Redirected":
        this.#redirects(node.redirects, scope);
        this.#node(node.command, scope);
        break;
      case "CompoundList":
        this.#statements(node.commands, scope);
        break;
      case "Subshell":
        this.#node(node.body, copyOf(scope));
        break;
      case "BraceGroup":
        this.#node(node.body, scope);
        break;
      case "For":
      case "Select": {
        const values = node.wordlist?.map((word) => readingsOf(word, scope)) ?? [null];
        const all = values.every((value) => value !== null) ? values.flatMap((value) => [...value!]) : null;
        scope.variables.set(singleOf(readingsOf(node.name, scope)) ?? "", all);
        this.#branch(scope, node.body);
        break;
      }
      case "If":
        this.#branch(
          scope,
          node.clause,
          node.then,
          ...node.elif.flatMap(({ clause, then }) => [clause, then]),
        );
        if (node.else !== undefined) this.#branch(scope, node.else);
        break;
      case "While":
        this.#branch(scope, node.clause, node.body);
        break;
      case "ArithmeticFor":
        this.#branch(scope, node.body);
        break;
      case "Case":
        for (const { body } of node.items) this.#branch(scope, body);
        break;
      case "Function":
        scope.functions.set(singleOf(readingsOf(node.name, scope)) ?? "", node.body);
        break;
      case "Coproc":
        this.#node(node.body, copyOf(scope));
        this.isKnown = false;
        break;
      default:
        this.#nested(node, scope);
    }
  }

  /** What may or may not run: afterwards only what it cannot have changed is known. */
  #branch(scope: Scope, ...parts: readonly Runnable[]): void {
    const inner = copyOf(scope);
    for (const part of parts) this.#node(part, inner);
    if (inner.cwd !== scope.cwd) scope.cwd = null;
    for (const [name, body] of inner.functions) scope.functions.set(name, body);
    for (const [name, value] of inner.variables)
      if (scope.variables.get(name) !== value) scope.variables.set(name, null);
  }

  #command(command: Command, scope: Scope): void {
    if (++this.#commands > MOST_COMMANDS) {
      this.isKnown = false;
      return;
    }
    this.#nested(command, scope);
    this.#redirects(command.redirects, scope);
    const words = [command.name, ...command.args].filter((word): word is Word => word?.type === "Word");
    if (words.length === 0) {
      // `A=b` alone stays set; before a command it is for that one only.
      for (const part of command.prefix)
        if (part.type === "Assignment")
          scope.variables.set(
            part.name,
            part.value.type === "Word" && part.append !== true ? readingsOf(part.value, scope) : null,
          );
      return;
    }
    this.#run(
      words.map((word) => readingsOf(word, scope)),
      scope,
      command,
    );
  }

  #run(values: readonly Value[], scope: Scope, command: Command): void {
    const [first, ...args] = values;
    const name = singleOf(first ?? null)?.replace(/^.*\//, "");
    if (name === undefined) {
      this.isKnown = false;
      return;
    }
    const body = scope.functions.get(name);
    if (body !== undefined) {
      this.#call(body, args, scope);
      return;
    }
    const inner = unwrapped(name, args);
    if (inner !== null) this.#unwrapped(inner, scope, command);
    else if (name === "cd") this.#moveTo(operands(args)[0], scope);
    else if (name === "pushd" || name === "popd") this.#push(name, operands(args)[0], scope);
    else if (/^(?:ba|z|da|k|a)?sh$/.test(name) || name === "eval") this.#inner(name, args, scope, command);
    else if (name === "trap") this.#text(operands(args)[0] ?? [""], copyOf(scope));
    else if (name === "apply_patch" || name === "applypatch") this.#patch(command, scope);
    else if (DECLARING.has(name)) this.#declare(command, scope);
    else this.#program(name, args, scope, command);
  }

  /** In the caller's directory and with its variables, as the shell does. */
  #call(body: FunctionBody, args: readonly Value[], scope: Scope): void {
    if (this.#depth >= DEEPEST) {
      this.isKnown = false;
      return;
    }
    const { variables } = scope;
    const given = new Map<string, Value>([["@", everyOne(args)]]);
    for (let i = 1; i <= 9; i++) given.set(String(i), args[i - 1] ?? null);
    const outer = [...given.keys()].map((name) => [name, variables.get(name)] as const);
    for (const [name, value] of given) variables.set(name, value);
    this.#depth++;
    this.#node(body, scope);
    this.#depth--;
    for (const [name, value] of outer)
      if (value === undefined) variables.delete(name);
      else variables.set(name, value);
  }

  #unwrapped({ words, directory, assigned = [] }: Unwrapped, scope: Scope, command: Command): void {
    if (words.length === 0) return;
    if (directory === undefined && assigned.length === 0) {
      this.#run(words, scope, command);
      return;
    }
    const inner = copyOf(scope);
    if (directory !== undefined) inner.cwd = this.#resolved(directory, scope);
    for (const text of assigned.map((value) => singleOf(value) ?? "")) {
      const at = text.indexOf("=");
      inner.variables.set(text.slice(0, at), [text.slice(at + 1)]);
    }
    this.#run(words, inner, command);
  }

  #program(name: string, args: readonly Value[], scope: Scope, command: Command): void {
    let { cwd } = scope;
    if (name === "git")
      for (const step of gitDirectories([...this.#gitVariables(scope, command), ...args]))
        cwd = this.#resolved(step, { ...scope, cwd });
    const unknown = name === "git" ? unknownVerb(args) : null;
    if (unknown !== null) {
      this.verbs.add(unknown.name);
      const alias = this.#aliases.get(unknown.name.toLowerCase());
      if (alias !== undefined) {
        this.#alias(alias, args.slice(unknown.at + 1), { ...copyOf(scope), cwd });
        return;
      }
    }
    const writes = programWrites(name, args);
    for (const write of writes) this.#write({ ...write, cwd });
    if (writes.length === 0 && !isHarmless(name, args)) this.isKnown = false;
  }

  /** `stash -u`, or `!` and a command line, which Git runs at the root of the worktree. */
  #alias(alias: string, args: readonly Value[], scope: Scope): void {
    const isShell = alias.startsWith("!");
    const words = args.map((arg) => singleOf(arg));
    // What cannot be told is left as a word that the shell would have to fill in.
    const rest = words.map((word) => (word === null ? '"$_"' : shellQuoted(word)));
    const inner = isShell && scope.root !== null ? { ...scope, cwd: scope.root } : scope;
    this.script([isShell ? alias.slice(1) : `git ${alias}`, ...rest].join(" "), inner);
  }

  /** `GIT_DIR=x git …`, as the options that say the same. */
  #gitVariables(scope: Scope, { prefix }: Command): Value[] {
    const found: Value[] = [];
    for (const [name, option] of GIT_VARIABLES) {
      const own = prefix.find((part) => part.type === "Assignment" && part.name === name);
      const value =
        own?.type === "Assignment" && own.value.type === "Word"
          ? readingsOf(own.value, scope)
          : scope.variables.get(name);
      if (value !== undefined) found.push([option], value);
    }
    return found;
  }

  /** What cannot be told as a file is left to the comparison. */
  #write(write: ShellWrite): void {
    const { value, names = [], cwd, use, brings } = write;
    const isTold = (one: Value) => one?.every((path) => cwd !== null || path.startsWith("/")) ?? false;
    if (use === undefined && ![value, ...names].every(isTold)) this.isKnown = false;
    if (brings === "always" || use?.leavesFiles === false) this.isKnown = false;
    this.writes.push(write);
  }

  #moveTo(target: Value | undefined, scope: Scope): void {
    const { cwd } = scope;
    if (target === undefined) scope.cwd = scope.home;
    else scope.cwd = singleOf(target) === "-" ? scope.before : asNamed(this.#resolved(target, scope));
    scope.before = cwd;
  }

  #push(name: string, target: Value | undefined, scope: Scope): void {
    const { cwd, stack } = scope;
    if (name === "pushd" && target !== undefined) {
      this.#moveTo(target, scope);
      scope.stack = [cwd, ...stack];
    } else {
      // A bare `pushd` changes places with the last one.
      scope.cwd = stack[0] ?? null;
      scope.stack = name === "popd" ? stack.slice(1) : [cwd, ...stack.slice(1)];
    }
  }

  #resolved(target: Value, scope: Pick<Scope, "cwd">): string | null {
    const path = singleOf(target);
    if (path === null || path === "-") return null;
    if (path.startsWith("/")) return path;
    return scope.cwd === null ? null : `${scope.cwd}/${path}`;
  }

  /** `bash -c '…'`, `eval '…'`, `bash <<< '…'`: a command line in a command line. */
  #inner(name: string, args: readonly Value[], scope: Scope, { redirects }: Command): void {
    if (name === "eval") {
      const words = args.map(singleOf);
      this.#text(words.includes(null) ? null : [words.join(" ")], scope);
      return;
    }
    const at = args.findIndex((arg) => /^-[a-z]*c$/.test(singleOf(arg) ?? ""));
    if (at !== -1) this.#text(args[at + 1] ?? null, copyOf(scope));
    else if (operands(args).length > 0 || redirects.length === 0) this.isKnown = false;
    else
      for (const redirect of redirects)
        if (redirect.type === "HereDoc") this.script(redirect.body.text, copyOf(scope));
        else if (redirect.type === "HereString" && redirect.target !== undefined)
          this.#text(readingsOf(redirect.target, scope), copyOf(scope));
        else this.isKnown = false;
  }

  #text(value: Value, scope: Scope): void {
    const text = singleOf(value);
    if (text === null) this.isKnown = false;
    else this.script(text, scope);
  }

  #patch({ redirects, args }: Command, scope: Scope): void {
    const bodies = redirects.flatMap((redirect) => (redirect.type === "HereDoc" ? [redirect.body.text] : []));
    for (const arg of args) if (arg.type === "Word") bodies.push(...(readingsOf(arg, scope) ?? []));
    for (const body of bodies)
      for (const path of patchedPaths(body)) this.#write({ value: [path], mode: "take", cwd: scope.cwd });
  }

  #declare({ args }: Command, scope: Scope): void {
    for (const arg of args)
      if (arg.type === "Assignment")
        scope.variables.set(arg.name, arg.value.type === "Word" ? readingsOf(arg.value, scope) : null);
  }

  #redirects(redirects: readonly Redirection[], scope: Scope): void {
    for (const redirect of redirects) {
      if (redirect.type !== "Redirect" || redirect.target === undefined || redirect.operator === "<")
        continue;
      if (redirect.operator === "<&") continue;
      const value = readingsOf(redirect.target, scope);
      // `2>&1` and `>&-` are about descriptors.
      if (redirect.operator === ">&" && /^(?:\d+|-)$/.test(singleOf(value) ?? "")) continue;
      this.#write({ value, mode: "take", cwd: scope.cwd });
    }
  }

  /** Commands inside words: `$(…)`, `<(…)`, `>(…)`, also in here-documents. */
  #nested(node: SyntaxNode, scope: Scope): void {
    forEachChild(node, (child) => {
      if (child.type === "Script") this.#statements(child.commands, copyOf(scope));
      else if (child.type !== "Statement" && child.type !== "CompoundList") this.#nested(child, scope);
    });
  }
}

/** Quotes do not matter here: what is quoted is mostly balanced, and this far off no command. */
function isTooDeep(command: string): boolean {
  let open = 0;
  for (let i = 0; i < command.length && open <= MOST_OPEN; i++) {
    const char = command[i];
    if (char === "(" || char === "{") open++;
    else if (open > 0 && (char === ")" || char === "}")) open--;
  }
  return open > MOST_OPEN;
}

/** A shell goes back by `..` the way that it came, also through a link. */
function asNamed(path: string | null): string | null {
  const names: string[] = [];
  for (const name of path?.split("/") ?? [])
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  return path === null ? null : `/${names.join("/")}`;
}

const DECLARING: ReadonlySet<string> = new Set(["export", "declare", "local", "readonly", "typeset"]);

const GIT_VARIABLES = [
  ["GIT_DIR", "--git-dir"],
  ["GIT_WORK_TREE", "--work-tree"],
] as const;

/** All of them, as the things that one word may stand for. */
function everyOne(values: readonly Value[]): Value {
  return values.some((value) => value === null) ? null : values.flatMap((value) => [...value!]);
}
