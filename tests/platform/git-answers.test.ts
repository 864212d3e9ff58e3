import { describe, expect, it } from "vitest";
import { isUnsent } from "../../src/platform/git-answers";

describe("a push that failed", () => {
  it.each([
    "fatal: unable to connect to 127.0.0.1: Connection refused",
    "fatal: Authentication failed for 'https://localhost/'",
    "fatal: '/srv/x.git' does not appear to be a git repository\nfatal: Could not read from remote repository.",
    "remote: Welcome!\nfatal: could not read Username for 'https://localhost': terminal prompts disabled",
  ])("did not arrive: %j", (stderr) => {
    expect(isUnsent(stderr)).toBe(true);
  });

  it.each([
    "fatal: the remote end hung up unexpectedly",
    "error: RPC failed; curl 56 Recv failure: Connection reset by peer",
    "fatal: read error: Connection reset by peer",
    "remote: cp: /srv/mirror: Permission denied\nfatal: the remote end hung up unexpectedly",
    "remote: error: the directory does not exist\nerror: RPC failed; curl 52 Empty reply from server",
    "",
  ])("may have arrived: %j", (stderr) => {
    expect(isUnsent(stderr)).toBe(false);
  });
});
