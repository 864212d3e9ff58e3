import * as fs from "node:fs";
import { join } from "node:path";
import { nodePlatform } from "../../../src/platform/node/node";
import { seal, unseal } from "../../../src/store/sealed";
import { masked } from "./trace";

const { digest } = nodePlatform();

/** A copy that the program cannot tell from the original: same modes, times and links, and an index that fits it. */
export function copyRepo(from: string, to: string): void {
  fs.rmSync(to, { recursive: true, force: true });
  copyDirectory(from, to, new Map());
  refitIndex(join(from, ".git/cotenant"), join(to, ".git/cotenant"));
}

function copyDirectory(from: string, to: string, linked: Map<number, string>): void {
  fs.mkdirSync(to, { mode: fs.statSync(from).mode & 0o7777 });
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [`${from}/${entry.name}`, `${to}/${entry.name}`];
    if (entry.isDirectory()) {
      copyDirectory(source, target, linked);
      continue;
    }
    const { ino, nlink, mtimeMs } = fs.statSync(source);
    const twin = nlink > 1 ? linked.get(ino) : undefined;
    if (twin !== undefined) {
      fs.linkSync(twin, target);
      continue;
    }
    fs.copyFileSync(source, target);
    fs.utimesSync(target, mtimeMs / 1000, mtimeMs / 1000);
    if (nlink > 1) linked.set(ino, target);
  }
}

/** `applied` names the log's inode and time. Where they fitted the original, they fit the copy. */
function refitIndex(from: string, to: string): void {
  const path = join(to, "index/applied");
  const [before, after] = [from, to].map((control) =>
    fs.statSync(join(control, "claims.jsonl"), { throwIfNoEntry: false }),
  );
  if (before === undefined || after === undefined || !fs.existsSync(path)) return;
  const bytes = fs.readFileSync(path);
  const applied = unseal(digest, bytes);
  if (applied === null || applied["inode"] !== before.ino) return;
  const mtime = applied["mtime_ms"] === before.mtimeMs ? { mtime_ms: after.mtimeMs } : {};
  fs.writeFileSync(path, seal(digest, { ...applied, inode: after.ino, ...mtime }, bytes.length));
}

/** Every file below, with its path from there. */
export function filesBelow(root: string): string[] {
  if (!fs.existsSync(root)) return [];
  return fs
    .readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .sort();
}

/**
 * What is left, without what differs from run to run. Two states with one shape hold the same files, whole or torn in
 * the same way, and a log of the same events about as many leases. Whether there is a cache depends on how fast it went.
 */
export function shapeOf(repo: string): string {
  const parts = [".git/cotenant", ".cotenant"].flatMap((place) =>
    filesBelow(join(repo, place))
      .filter((path) => !path.startsWith("cache/"))
      .map((path) => {
        const bytes = fs.readFileSync(join(repo, place, path));
        return `${place}/${masked(path)} ${content(path, bytes)}`;
      }),
  );
  return parts.sort().join("\n");
}

function content(path: string, bytes: Buffer): string {
  const text = bytes.toString("latin1");
  const events = [...text.matchAll(/"event_type":"([\w.]+)"/g)].map(([, type]) => type).join(" ");
  const tokens = text.split('"fencing_token"').length - 1;
  const end = text === "" ? "empty" : text.endsWith("\n") ? "whole" : "torn";
  if (!path.startsWith("index/")) return `${events} ${tokens} ${text.split("\n").length} ${end}`;
  const value = unseal(digest, bytes);
  return value === null ? end : `sealed ${value["sequence"] ?? ""}`;
}
