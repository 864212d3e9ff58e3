import { during } from "../../errors/cotenant-error";
import { parentOf } from "../../identity/path-text";
import { fromBinary, toBinary } from "../../platform/binary-text";
import type { Platform } from "../../platform/platform";
import { replaceFile } from "../../platform/replace-file";
import { blockIn, withBlock, withoutBlock } from "./text-block";

/** Whose lines they are, and what the first of them says about that. */
export interface Hider {
  readonly name: string;
  readonly remark: string;
}

/** Git's own list for this clone. Nobody else sees it, and it is never committed. */
export async function hide(
  platform: Platform,
  commonDir: string,
  names: readonly string[],
  { name, remark }: Hider,
): Promise<void> {
  const { text, block } = await oursIn(platform, commonDir, name);
  const old = block?.lines ?? [];
  const lines = [...new Set([...old, ...names.map((one) => `/${one}`)])];
  if (lines.length === old.length) return;
  await write(platform, commonDir, withBlock(text, name, lines, remark));
}

export async function show(
  platform: Platform,
  commonDir: string,
  names: readonly string[],
  { name, remark }: Hider,
): Promise<void> {
  const { text, block } = await oursIn(platform, commonDir, name);
  if (block === null) return;
  const lines = block.lines.filter((line) => !names.includes(line.replace(/^\//, "")));
  if (lines.length === block.lines.length) return;
  const rest = lines.length > 0 ? withBlock(text, name, lines, remark) : withoutBlock(block);
  await write(platform, commonDir, rest);
}

/** What these lines of ours hide, as paths below a worktree. */
export async function hiddenBy(platform: Platform, commonDir: string, { name }: Hider): Promise<string[]> {
  const { block } = await oursIn(platform, commonDir, name);
  return block?.lines.map((line) => line.replace(/^\//, "")) ?? [];
}

function fileIn(commonDir: string): string {
  return `${commonDir}/info/exclude`;
}

async function oursIn(platform: Platform, commonDir: string, name: string) {
  const text = await read(platform, commonDir);
  const block = text === null ? null : blockIn(text, name);
  return { text, block: block === "damaged" ? null : block };
}

/** Whatever the encoding is, ours is ASCII: not one byte of theirs changes. */
async function read({ files }: Platform, commonDir: string): Promise<string | null> {
  const path = fileIn(commonDir);
  return during("reading what Git passes over", path, async () => {
    const bytes = await files.readFile(path);
    return bytes === null ? null : toBinary(bytes);
  });
}

async function write(platform: Platform, commonDir: string, text: string | null): Promise<void> {
  const path = (await platform.files.realPath(fileIn(commonDir))) ?? fileIn(commonDir);
  const mode = (await platform.files.stat(path))?.mode ?? 0o644;
  return during("telling Git what to pass over", path, async () => {
    if (text === null) {
      await platform.files.unlink(path);
      return;
    }
    await platform.files.makeDirectory(parentOf(path) ?? "/", 0o755);
    await replaceFile(platform, path, fromBinary(text), mode & 0o777);
  });
}
