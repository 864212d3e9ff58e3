import * as fs from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { nodePlatform } from "../../../src/platform/node/node";
import { decodeLine, type Line } from "../../../src/store/envelope";
import { LogCheck } from "../../../testing/checker/log-check";
import { Verdict } from "../../../testing/checker/verdict";

const { digest } = nodePlatform();

/** What is in the log and its archive, each line once, oldest first. */
export interface LogBook {
  readonly texts: readonly string[];
  readonly lines: readonly Line[];
  /** Bytes after the last whole line. */
  readonly torn: number;
  readonly inode: number | null;
}

const SEGMENT = /^claims-\d{6}\.jsonl(?:\.gz)?$/;

export function readLog(control: string): LogBook {
  const path = join(control, "claims.jsonl");
  const archive = join(control, "archive");
  const names = fs.existsSync(archive)
    ? fs
        .readdirSync(archive)
        .filter((name) => SEGMENT.test(name))
        .sort()
    : [];
  const archived = names.map((name) => {
    const bytes = fs.readFileSync(join(archive, name));
    return (name.endsWith(".gz") ? gunzipSync(bytes) : bytes).toString("utf8");
  });
  const stat = fs.statSync(path, { throwIfNoEntry: false });
  const current = stat === undefined ? "" : fs.readFileSync(path, "utf8");
  const all = [...archived, current].flatMap((text) => text.split("\n"));
  const texts = [...new Set(all.filter((text) => text !== ""))];
  const lines = texts.map((text) => decodeLine(digest, text)).filter((line) => line !== null);
  const torn = current.length - (current.lastIndexOf("\n") + 1);
  return { texts, lines, torn, inode: stat?.ino ?? null };
}

/**
 * The rules of the log, by an eye that shares nothing with the store: sums, order, tokens that rise, one holder, steals
 * that say so. A torn end belongs to somebody who died, and is not looked at. Answers what is wrong.
 */
export function checkLog({ texts, torn }: LogBook): { wrong: string[]; leases: Map<string, number> } {
  const verdict = new Verdict();
  const check = new LogCheck(verdict);
  for (const text of torn > 0 ? texts.slice(0, -1) : texts) check.take(text);
  const leases = new Map([...check.open.values()].map(({ leaseId, token }) => [leaseId, token]));
  return { wrong: [...verdict.violations], leases };
}
