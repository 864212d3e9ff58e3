import * as fs from "node:fs";
import { join } from "node:path";
import { checkLog, readLog } from "../injection/log";
import { A, B, REF, type Room, type Said } from "./room";

/** What a publish must never leave, whatever happened to it; and that the next ones work. */
export class Aftermath {
  readonly wrong: string[] = [];
  readonly #room: Room;
  readonly #old: string | null;
  readonly #main: string;
  readonly #shared: string;

  /** Before the publish under test. */
  constructor(room: Room) {
    this.#room = room;
    this.#old = room.tip();
    this.#main = room.git("rev-parse", "main");
    this.#shared = this.#picture();
  }

  /** Old or new, and nothing else; new, if it was said to be done. */
  checkRef(isDone: boolean): boolean {
    const tip = this.#room.tip();
    const isOld = tip === this.#old;
    if (!isOld && !this.#isOurs(tip))
      this.wrong.push(`the branch is at ${tip}, which is neither old nor new`);
    if (isDone && isOld) this.wrong.push("said to be done, and the branch is where it was");
    if (this.#picture() !== this.#shared)
      this.wrong.push("HEAD, the index or a file of the worktree has changed");
    this.#checkObjects();
    return !isOld;
  }

  /** Without any repair: somebody else publishes to the same branch, then the first one asks again. */
  checkNext(requestId: string): void {
    for (const [agent, args] of [
      [B, this.#room.publishArgs(B)],
      [A, this.#room.publishArgs(A, requestId)],
    ] as const) {
      this.#must(agent, args);
      if (this.wrong.length > 0) return;
    }
    const range = `${this.#old ?? this.#main}..${REF}`;
    const commits = (path: string) => this.#room.git("rev-list", "--count", range, "--", path);
    for (const path of ["src/a.ts", "src/b.ts"])
      if (commits(path) !== "1") this.wrong.push(`${path} was published ${commits(path)} times`);
    for (const name of ["a", "b"])
      if (this.#room.git("show", `${REF}:src/${name}.ts`) !== `published by ${name}`)
        this.wrong.push(`src/${name}.ts is not what was published`);
    this.#checkObjects();
    this.#checkLog();
    this.#checkLeftovers();
  }

  #must(agent: string, args: readonly string[]): void {
    const said: Said = this.#room.run(agent, args);
    if (said.status !== 0)
      this.wrong.push(`${agent} cannot publish afterwards: ${said.stdout}${said.stderr}`);
  }

  #isOurs(tip: string | null): boolean {
    if (tip === null) return false;
    const parent = this.#room.git("rev-parse", `${tip}^`);
    const content = this.#room.git("show", `${tip}:src/a.ts`);
    return parent === (this.#old ?? this.#main) && content === "published by a";
  }

  #checkObjects(): void {
    const said = this.#room.git("fsck", "--strict", "--no-dangling", "--no-progress");
    if (said !== "") this.wrong.push(`git fsck: ${said}`);
  }

  /** Every intent has an end, and only one. */
  #checkLog(): void {
    const log = readLog(this.#room.control);
    const open = new Map<string, number>();
    for (const { type, payload } of log.lines) {
      const id = String(payload["publish_id"]);
      if (type === "publish.intended") open.set(id, (open.get(id) ?? 0) + 1);
      else if (/^publish\.(?:committed|abandoned|unsettled)$/.test(type))
        open.set(id, (open.get(id) ?? 0) - 1);
    }
    for (const [id, count] of open) if (count !== 0) this.wrong.push(`publish ${id} has ${1 - count} ends`);
    this.wrong.push(...checkLog(log).wrong);
  }

  #checkLeftovers(): void {
    const refs = join(this.#room.repo, ".git/refs");
    const locks = (fs.readdirSync(refs, { recursive: true }) as string[]).filter((name) =>
      name.endsWith(".lock"),
    );
    if (locks.length > 0) this.wrong.push(`left for ever: ${locks.join(", ")}`);
  }

  #picture(): string {
    const names = [".git/HEAD", ".git/index", ".git/refs/heads/main", "src/a.ts", "src/b.ts"];
    return names.map((name) => fs.readFileSync(join(this.#room.repo, name), "base64")).join("\n");
  }
}
