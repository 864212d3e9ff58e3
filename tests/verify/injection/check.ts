import * as fs from "node:fs";
import { join } from "node:path";
import { ERRORS, isErrorCode } from "../../../src/errors/registry";
import { nodePlatform } from "../../../src/platform/node/node";
import { EVERYTHING } from "../../../src/store/gather";
import { layoutOf } from "../../../src/store/layout";
import { Reader } from "../../../src/store/reader";
import { checkLog, type LogBook, readLog } from "./log";
import type { Scenario } from "./scenarios";
import { filesBelow } from "./tree";

/** What a program would make of an answer. */
export interface Understood {
  readonly ok: boolean;
  readonly code: string | null;
  readonly isUnknown: boolean;
  readonly isReplayed: boolean;
  readonly requestId: string | null;
}

interface Said {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** One JSON document, with a known code, the exit status that belongs to it and a next step; and no innards. */
export function checkAnswer(said: Said, wrong: string[]): Understood {
  const understood = { ok: false, code: null, isUnknown: false, isReplayed: false, requestId: null };
  if (/^\s+at |\\n\s+at /m.test(`${said.stdout}\n${said.stderr}`))
    wrong.push(`a stack trace: ${said.stdout}${said.stderr}`);
  let answer: { ok: boolean; data?: Record<string, unknown>; error?: Refused };
  try {
    answer = JSON.parse(said.stdout) as typeof answer;
  } catch {
    wrong.push(`not one JSON document (exit ${said.status}): ${said.stdout}${said.stderr}`);
    return understood;
  }
  if (answer.ok !== (said.status === 0)) wrong.push(`exit ${said.status} with ${said.stdout}`);
  if (answer.ok) return { ...understood, ok: true, isReplayed: answer.data?.["replayed"] === true };
  const { code = "", hint = "", data = {} } = answer.error ?? {};
  if (!isErrorCode(code) || code === "E_INTERNAL") wrong.push(`answered with ${code}: ${said.stdout}`);
  else if (ERRORS[code].exit !== said.status) wrong.push(`${code} with exit ${said.status}`);
  if (hint === "") wrong.push(`no next step: ${said.stdout}`);
  const isUnknown = data["outcome"] === "unknown";
  const requestId = typeof data["request_id"] === "string" ? data["request_id"] : null;
  if (isUnknown && requestId === null) wrong.push(`unknown, and no id to settle it: ${said.stdout}`);
  return { ok: false, code, isUnknown, isReplayed: false, requestId };
}

interface Refused {
  readonly code?: string;
  readonly hint?: string;
  readonly data?: Readonly<Record<string, unknown>>;
}

/** How often the command's effect is in the log, beyond what was there before. Half of it is none, and wrong. */
export function effects(scenario: Scenario, before: LogBook, after: LogBook, wrong: string[]): number {
  const old = new Set(before.texts);
  const fresh = after.lines.filter((_line, i) => !old.has(after.texts[i]!));
  const found = fresh.filter(
    ({ type, actor }) => type === scenario.event && actor.agentId === scenario.agent,
  );
  for (const { payload, sequence } of found) {
    const [leases, ended] = [payload["leases"], payload["ended"]] as unknown[][];
    const count = Math.max(leases?.length ?? 0, ended?.length ?? 0);
    if (count !== scenario.leases && !scenario.isRepeatable)
      wrong.push(`line ${sequence} is about ${count} of ${scenario.leases} leases`);
  }
  return found.length;
}

/** Promises 1, 2, 5 and 10 of what is there: the log's own rules, and the same view with the index and without. */
export async function checkStore(scenario: Scenario, control: string, wrong: string[]): Promise<void> {
  const log = readLog(control);
  const withIndex = await view(control, wrong);
  const { wrong: violations, leases } = checkLog(log);
  if (scenario.isOpen) {
    wrong.push(...violations);
    if (!sameView(withIndex, leases))
      wrong.push(`readers see ${shown(withIndex)}, the log says ${shown(leases)}`);
  }
  const index = join(control, "index/applied");
  if (!fs.existsSync(index)) return;
  // Without it nobody takes the rest for an index.
  fs.renameSync(index, `${index}.kept`);
  const without = await view(control, wrong);
  fs.renameSync(`${index}.kept`, index);
  if (!sameView(withIndex, without))
    wrong.push(`with the index ${shown(withIndex)}, without ${shown(without)}`);
}

/** Promise 2, also where damage has broken the chain: what is granted afterwards is above all that was before. */
export function checkTokens(before: LogBook, after: LogBook, wrong: string[]): void {
  const old = new Set(before.texts);
  const tokens = ({ payload }: LogBook["lines"][number]) =>
    ((payload["leases"] ?? []) as { fencing_token: number }[]).map((lease) => lease.fencing_token);
  const highest = Math.max(0, ...before.lines.flatMap(tokens));
  for (const [i, line] of after.lines.entries()) {
    if (old.has(after.texts[i]!) || line.type !== "claim.acquired") continue;
    if (tokens(line).every((token) => token <= highest))
      wrong.push(`line ${line.sequence}: token ${tokens(line)} after ${highest}`);
  }
}

/** Promise 10: a secret is in the secrets' own files and nowhere else, and in no answer. */
export function checkSecrets(repo: string, answers: readonly string[], wrong: string[]): void {
  const files = [".git/cotenant", ".cotenant"].flatMap((place) =>
    filesBelow(join(repo, place)).map((path) => join(repo, place, path)),
  );
  const isPrivate = (path: string) => path.includes("/cotenant/secrets/");
  const secrets = files
    .filter(isPrivate)
    .flatMap((path) =>
      [...fs.readFileSync(path, "utf8").matchAll(/"secret":"([^"]+)"/g)].map(([, secret]) => secret!),
    );
  const told = answers.join("\n");
  if (secrets.some((secret) => told.includes(secret))) wrong.push("a secret was answered");
  for (const path of files.filter((file) => !isPrivate(file))) {
    const text = fs.readFileSync(path, "latin1");
    if (secrets.some((secret) => text.includes(secret))) wrong.push(`a secret is in ${path}`);
  }
  for (const path of files.filter(isPrivate))
    if ((fs.statSync(path).mode & 0o077) !== 0) wrong.push(`others may read ${path}`);
}

/** Unfinished files that outlived the writers after them, and `gc`. */
export function leftovers(repo: string): string[] {
  return [".git/cotenant", ".cotenant"]
    .flatMap((place) => filesBelow(join(repo, place)).map((path) => `${place}/${path}`))
    .filter((path) => /\.new$|\.new-[0-9a-f]+$|\.next$|locks\/(?:renaming|sync-failed)$/.test(path));
}

/** As if nobody had come for a day: what is unfinished then, nobody is going to finish. */
export function age(repo: string): void {
  const yesterday = new Date(Date.now() - 86_400_000);
  for (const path of leftovers(repo)) fs.utimesSync(join(repo, path), yesterday, yesterday);
}

type View = ReadonlyMap<string, number>;

async function view(control: string, wrong: string[]): Promise<View> {
  try {
    const { leases } = await new Reader(nodePlatform(), layoutOf(control)).snapshot(EVERYTHING);
    return new Map([...leases.values()].map((lease) => [lease.leaseId, lease.fencingToken]));
  } catch (error) {
    wrong.push(`readers fail: ${(error as Error).message}`);
    return new Map();
  }
}

function sameView(a: View, b: View): boolean {
  return a.size === b.size && [...a].every(([id, token]) => b.get(id) === token);
}

function shown(leases: View): string {
  return [...leases.values()].map((token) => `#${token}`).join(" ") || "nothing";
}
