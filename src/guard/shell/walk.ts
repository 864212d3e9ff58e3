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
import { patchedPaths } from "../patch";
import { operands, type Written } from "./arguments";
import { gitDirectory, HARMLESS_GIT } from "./git";
import { HARMLESS, programWrites } from "./programs";
import { readingsOf, type Scope, singleOf, type Value } from "./words";

/** One thing that a command line may write, and where its shell stands by then. */
export interface ShellWrite extends Written {
  readonly cwd: string | null;
}

export interface Reading {
  readonly writes: readonly ShellWrite[];
  /** Everything in it is known to write nothing but what is listed. */
  readonly isKnown: boolean;
}

/** Longer ones are programs, not commands; what they did is seen afterwards. */
const LONGEST = 256 << 10;
const DEEPEST = 16;

/** What a command line may write, as far as that can be read from it. */
export function readCommand(
  command: string,
  from: { readonly cwd: string; readonly home: string | null },
): Reading {
  const walker = new Walker();
  if (command.length > LONGEST) return { writes: [], isKnown: false };
  walker.script(command, { cwd: from.cwd, home: from.home, variables: new Map() });
  return { writes: walker.writes, isKnown: walker.isKnown };
}

class Walker {
  readonly writes: ShellWrite[] = [];
  isKnown = true;
  #depth = 0;

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

  #list({ commands }: CompoundList, scope: Scope): void {
    this.#statements(commands, scope);
  }

  #node(node: Statement["command"] | CommandNode | CompoundList, scope: Scope): void {
    switch (node.type) {
      case "Command":
        this.#command(node, scope);
        break;
      case "AndOr":
        for (const part of node.commands) this.#node(part, scope);
        break;
      case "Pipeline":
        for (const part of node.commands) this.#node(part, node.commands.length > 1 ? copyOf(scope) : scope);
        break;
      case "Redirected":
        this.#redirects(node.redirects, scope);
        this.#node(node.command, scope);
        break;
      case "CompoundList":
        this.#list(node, scope);
        break;
      case "Subshell":
        this.#list(node.body, copyOf(scope));
        break;
      case "BraceGroup":
        this.#list(node.body, scope);
        break;
      case "For":
      case "Select": {
        const values = node.wordlist?.map((word) => this.#value(word, scope)) ?? [null];
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
      case "Coproc":
        // When it is called, and where from, is anybody's guess.
        this.#node(node.body, { ...copyOf(scope), cwd: node.type === "Function" ? null : scope.cwd });
        this.isKnown = false;
        break;
      default:
        this.#nested(node, scope);
    }
  }

  /** What may or may not run: afterwards only what it cannot have changed is known. */
  #branch(scope: Scope, ...lists: readonly CompoundList[]): void {
    const inner = copyOf(scope);
    for (const list of lists) this.#list(list, inner);
    if (inner.cwd !== scope.cwd) scope.cwd = null;
    for (const [name, value] of inner.variables)
      if (scope.variables.get(name) !== value) scope.variables.set(name, null);
  }

  #command(command: Command, scope: Scope): void {
    this.#nested(command, scope);
    this.#redirects(command.redirects, scope);
    const words = [command.name, ...command.args].filter((word): word is Word => word?.type === "Word");
    if (words.length === 0) {
      // `A=b` alone stays set; before a command it is for that one only.
      for (const part of command.prefix)
        if (part.type === "Assignment")
          scope.variables.set(
            part.name,
            part.value.type === "Word" && part.append !== true ? this.#value(part.value, scope) : null,
          );
      return;
    }
    this.#run(
      words.map((word) => this.#value(word, scope)),
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
    const inner = unwrapped(name, args);
    if (inner !== null) {
      if (inner.length > 0) this.#run(inner, scope, command);
    } else if (name === "cd" || name === "pushd") this.#moveTo(operands(args)[0], scope);
    else if (/^(?:ba|z|da|k|a)?sh$/.test(name) || name === "eval") this.#inner(name, args, scope);
    else if (name === "apply_patch" || name === "applypatch") this.#patch(command, scope);
    else if (DECLARING.has(name)) this.#declare(command, scope);
    else this.#program(name, args, scope);
  }

  #program(name: string, args: readonly Value[], scope: Scope): void {
    const directory = name === "git" ? gitDirectory(args) : undefined;
    const cwd = directory === undefined ? scope.cwd : this.#resolved(directory, scope);
    const writes = programWrites(name, args);
    for (const write of writes) this.writes.push({ ...write, cwd });
    if (writes.length > 0 && writes.some(({ value }) => value === null)) this.isKnown = false;
    if (writes.length === 0 && !isHarmless(name, args)) this.isKnown = false;
  }

  #moveTo(target: Value | undefined, scope: Scope): void {
    if (target === undefined) scope.cwd = scope.home;
    else scope.cwd = this.#resolved(target, scope);
  }

  #resolved(target: Value, scope: Scope): string | null {
    const path = singleOf(target);
    if (path === null || path === "-") return null;
    if (path.startsWith("/")) return path;
    return scope.cwd === null ? null : `${scope.cwd}/${path}`;
  }

  /** `bash -c '…'`, `eval '…'`: a command line in a command line. */
  #inner(name: string, args: readonly Value[], scope: Scope): void {
    const at = args.findIndex((arg) => /^-[a-z]*c$/.test(singleOf(arg) ?? ""));
    const words = name === "eval" ? args.map(singleOf) : [at === -1 ? null : singleOf(args[at + 1] ?? null)];
    if (words.some((word) => word === null)) this.isKnown = false;
    else this.script(words.join(" "), name === "eval" ? scope : copyOf(scope));
  }

  #patch({ redirects, args }: Command, scope: Scope): void {
    const bodies = redirects.flatMap((redirect) => (redirect.type === "HereDoc" ? [redirect.body.text] : []));
    for (const arg of args) if (arg.type === "Word") bodies.push(...(readingsOf(arg, scope) ?? []));
    for (const body of bodies)
      for (const path of patchedPaths(body))
        this.writes.push({ value: [path], mode: "take", cwd: scope.cwd });
  }

  #declare({ args }: Command, scope: Scope): void {
    for (const arg of args)
      if (arg.type === "Assignment")
        scope.variables.set(arg.name, arg.value.type === "Word" ? this.#value(arg.value, scope) : null);
  }

  #redirects(redirects: readonly Redirection[], scope: Scope): void {
    for (const redirect of redirects) {
      if (redirect.type !== "Redirect" || redirect.target === undefined || redirect.operator === "<")
        continue;
      if (redirect.operator === "<&") continue;
      const value = this.#value(redirect.target, scope);
      // `2>&1` and `>&-` are about descriptors.
      if (redirect.operator === ">&" && /^(?:\d+|-)$/.test(singleOf(value) ?? "")) continue;
      if (value === null) this.isKnown = false;
      this.writes.push({ value, mode: "take", cwd: scope.cwd });
    }
  }

  #value(word: Word, scope: Scope): Value {
    return readingsOf(word, scope);
  }

  /** Commands inside words: `$(…)`, `<(…)`, `>(…)`, also in here-documents. */
  #nested(node: SyntaxNode, scope: Scope): void {
    forEachChild(node, (child) => {
      if (child.type === "Script") this.#statements(child.commands, copyOf(scope));
      else if (child.type !== "Statement" && child.type !== "CompoundList") this.#nested(child, scope);
    });
  }
}

const DECLARING: ReadonlySet<string> = new Set(["export", "declare", "local", "readonly", "typeset"]);

/** Programs that only run another, and how many words of their own they take before it. */
function unwrapped(name: string, args: readonly Value[]): readonly Value[] | null {
  switch (name) {
    case "sudo":
    case "doas":
      return operandsFrom(args, ["-u", "-g", "-h", "-p", "-C", "-D"]);
    case "env":
      return operandsFrom(args, ["-u", "-C", "-S"]).slice(
        assignments(operandsFrom(args, ["-u", "-C", "-S"])),
      );
    case "timeout":
      return operandsFrom(args, ["-s", "-k", "--signal", "--kill-after"]).slice(1);
    case "nice":
    case "ionice":
      return operandsFrom(args, ["-n", "-c", "-p"]);
    case "xargs":
      return operandsFrom(args, ["-n", "-I", "-P", "-d", "-L", "-s", "-a", "-E"]);
    case "nohup":
    case "setsid":
    case "stdbuf":
    case "command":
    case "builtin":
    case "exec":
    case "time":
    case "chronic":
    case "busybox":
      return operandsFrom(args, ["-a", "-o", "-e", "-i"]);
    default:
      return null;
  }
}

/** From the first word on that is no option: what follows belongs to the inner command, options and all. */
function operandsFrom(args: readonly Value[], valued: readonly string[]): readonly Value[] {
  for (let i = 0; i < args.length; i++) {
    const text = singleOf(args[i]!);
    if (text === "--") return args.slice(i + 1);
    if (text === null || !text.startsWith("-")) return args.slice(i);
    if (valued.includes(text)) i++;
  }
  return [];
}

function assignments(args: readonly Value[]): number {
  const at = args.findIndex((arg) => !/^[A-Za-z_]\w*=/.test(singleOf(arg) ?? ""));
  return at === -1 ? args.length : at;
}

function isHarmless(name: string, args: readonly Value[]): boolean {
  if (name !== "git") return HARMLESS.has(name);
  const verb = operandsFrom(args, ["-C", "-c", "--git-dir", "--work-tree"])[0];
  return HARMLESS_GIT.has(singleOf(verb ?? null) ?? "");
}

function copyOf(scope: Scope): Scope {
  return { ...scope, variables: new Map(scope.variables) };
}
