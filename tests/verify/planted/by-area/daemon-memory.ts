import type { TestPlant } from "../test-plants";

const FOLLOWER = "tests/daemon/log-follower.test.ts";
const WATCHED = "tests/daemon/watched-issues.test.ts";
const EVENTS = "tests/cli/events-daemon.test.ts";

export const PLANTS: readonly TestPlant[] = [
  {
    name: "the daemon answers before it has heard of all changes",
    file: "src/daemon/watched-issues.ts",
    from: "if (!(await this.#cookies.passed()) || epoch !== this.#epoch) return null;",
    to: "if (epoch !== this.#epoch) return null;",
    test: WATCHED,
    named: "name a file that is written in place at once",
  },
  {
    name: "the daemon trusts a queue that may have overflowed",
    file: "src/daemon/watched-issues.ts",
    from: 'if (this.#inARow > this.#queueLength! / 4) this.#forgetAll("too many changes at once");',
    to: "",
    test: WATCHED,
    named: "are not known after more changes at once than the kernel may have kept",
  },
  {
    name: "a cache counts as true from when that is said",
    file: "src/daemon/watched-issues.ts",
    from: "this.#known.set(path, { cache, tick });",
    to: "this.#known.set(path, { cache, tick: this.#tick });",
    test: WATCHED,
    named: "count as changed what changes between the answer and the word",
  },
  {
    name: "a directory in the place of the watched one passes for it",
    file: "src/daemon/issue-folder-watch.ts",
    from: 'else if (name === basename(folder)) onLost("it was moved or removed");',
    to: "",
    test: WATCHED,
    named: "though another takes its place",
  },
  {
    name: "a link to an issue passes for its directory",
    file: "src/daemon/issue-folder-watch.ts",
    from: "if (stat?.isSymbolicLink() === true) this.#links.add(name);\n      else ",
    to: "",
    test: WATCHED,
    named: "name a link always",
  },
  {
    name: "an event is told twice when the files take over",
    file: "src/daemon/log-follower.ts",
    from: "this.#last = event.sequence;",
    to: "",
    test: FOLLOWER,
    named: "nothing twice, nothing missed, in order",
  },
  {
    name: "the files take over from where the log ends",
    file: "src/daemon/log-follower.ts",
    from: "return await this.#parts.direct.watch((event) => this.#tell(event), this.#last);",
    to: "return await this.#parts.direct.watch((event) => this.#tell(event));",
    test: FOLLOWER,
    named: "leaves a daemon that is there and says nothing",
  },
  {
    name: "a follower stays with a daemon that was stopped",
    file: "src/daemon/log-follower.ts",
    from: "if (awaited !== null && clock.monotonicMs() - awaited.sinceMs >= this.#patienceMs) return;",
    to: "",
    test: EVENTS,
    named: "through a SIGSTOP",
  },
];
