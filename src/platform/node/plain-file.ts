import * as fs from "node:fs";

const { O_APPEND, O_CREAT, O_RDONLY, O_RDWR } = fs.constants;
/** Means nothing to a file. A pipe in the place of one would keep us for ever. */
const O_NONBLOCK = fs.constants.O_NONBLOCK ?? 0;
const O_NOFOLLOW = fs.constants.O_NOFOLLOW ?? 0;

/** The text of a file, and of nothing else: a pipe or a device where one should be is an error at once. */
export function readPlainFile(path: string): string {
  return withPlainFile(path, O_RDONLY | O_NONBLOCK, 0, (fd) => fs.readFileSync(fd, "utf8"));
}

/** Writes at the beginning of a file of our own, made where it is missing. A link in its place leads nowhere. */
export function overwritePlainFile(path: string, text: string, mode: number): void {
  withPlainFile(path, O_RDWR | O_CREAT | O_NONBLOCK | O_NOFOLLOW, mode, (fd) => fs.writeSync(fd, text, 0));
}

/** Appends to a file of our own, made where it is missing: neither a link nor a second name for somebody else's file. */
export function appendPlainFile(path: string, text: string, mode: number): void {
  withPlainFile(path, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK | O_NOFOLLOW, mode, (fd) => {
    const { uid, nlink } = fs.fstatSync(fd);
    if (nlink !== 1 || uid !== (process.getuid?.() ?? uid)) throw new Error(`${path} is not ours alone`);
    fs.writeSync(fd, text);
  });
}

function withPlainFile<T>(path: string, flags: number, mode: number, act: (fd: number) => T): T {
  const fd = fs.openSync(path, flags, mode);
  try {
    if (!fs.fstatSync(fd).isFile()) throw new Error(`${path} is not a file`);
    return act(fd);
  } finally {
    fs.closeSync(fd);
  }
}
