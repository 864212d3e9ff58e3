import * as fs from "node:fs";
import { appendPlainFile } from "../platform/node/plain-file";

const LARGEST = 1 << 20;

/** The daemon's own log: one line of JSON each, the last two files of a megabyte. Nobody's secret is ever told to it. */
export class Journal {
  constructor(private readonly path: string) {}

  /** Never the reason why something else fails. */
  note(message: string, more: Readonly<Record<string, unknown>> = {}): void {
    try {
      const size = fs.lstatSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
      if (size > LARGEST) fs.renameSync(this.path, `${this.path}.1`);
      const line = JSON.stringify({ time: new Date().toISOString(), pid: process.pid, message, ...more });
      appendPlainFile(this.path, `${line}\n`, 0o600);
    } catch {
      // A full disk has other worries.
    }
  }
}
