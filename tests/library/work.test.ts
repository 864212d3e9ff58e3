import { describe } from "vitest";
import { entryJson, queuePauseJson } from "../../src/features/land/commands/output";
import { statusData } from "../../src/features/watch/commands/status";
import { ADA, BOB, compare, DONE, EVA, ONE, row, TWO } from "./parity";

describe("a request about work, by the library and by the program", () => {
  compare([
    row({
      words: "issue create --title Login --priority high --label type:bug",
      ask: ({ issue }) => issue.create({ title: "Login", priority: "high", labels: ["type:bug"] }),
    }),
    row({ words: "issue create", ask: ({ issue }) => issue.create({}) }),
    row({
      words: "issue create --title Login --state done",
      ask: ({ issue }) => issue.create({ title: "Login", state: "done" }),
    }),
    row({
      words: `issue update ${ONE} --priority critical --label area:api`,
      ask: ({ issue }) => issue.update({ issue: ONE, priority: "critical", labels: ["area:api"] }),
    }),
    row({
      words: `issue update ${ONE} --state nonsense`,
      ask: ({ issue }) => issue.update({ issue: ONE, state: "nonsense" }),
    }),
    row({
      words: `issue update ${ONE} --state done`,
      before: [`${ADA} claim acquire ${ONE}`],
      ask: ({ issue }) => issue.update({ issue: ONE, state: "done" }),
    }),
    row({
      words: `issue update ${ONE} --state done --release`,
      before: [`${ADA} claim acquire ${ONE}`],
      ask: ({ issue }) => issue.update({ issue: ONE, state: "done", release: true }),
    }),
    row({
      words: `issue assign ${ONE} ${BOB}`,
      ask: ({ issue }) => issue.assign({ issue: ONE, assignee: BOB }),
    }),
    row({ words: `issue unassign ${ONE}`, ask: ({ issue }) => issue.unassign({ issue: ONE }) }),
    row({
      words: `issue reject ${ONE} --reason duplicate`,
      ask: ({ issue }) => issue.reject({ issue: ONE, reason: "duplicate" }),
    }),
    row({ words: `issue reopen ${DONE}`, ask: ({ issue }) => issue.reopen({ issue: DONE }) }),
    row({ words: `issue delete ${ONE}`, ask: ({ issue }) => issue.delete({ issue: ONE }) }),
    row({ words: "issue show nothing", ask: ({ issue }) => issue.show({ issue: "nothing" }) }),
    row({
      words: `dep add ${ONE} ${TWO}`,
      ask: ({ dep }) => dep.add({ issue: ONE, needs: [TWO] }),
    }),
    row({
      words: `dep add ${ONE} ${TWO}`,
      before: [
        `${ADA} claim acquire ${TWO}`,
        `${ADA} dep add ${TWO} ${ONE}`,
        `${ADA} claim acquire ${ONE} --allow-blocked --reason x`,
      ],
      ask: ({ dep }) => dep.add({ issue: ONE, needs: [TWO] }),
    }),
    row({
      words: `label add ${ONE} type:bug`,
      ask: ({ label }) => label.add({ issue: ONE, labels: ["type:bug"] }),
    }),
    row({ words: `label add ${ONE} bug`, ask: ({ label }) => label.add({ issue: ONE, labels: ["bug"] }) }),
    row({ words: `claim next`, ask: ({ claim }) => claim.next({}) }),
    row({
      words: `claim next --type chore`,
      ask: ({ claim }) => claim.next({ types: ["chore"] }),
    }),
    row({
      words: "claim create --title Login --ttl 300",
      ask: ({ claim }) => claim.create({ title: "Login", ttlSecs: 300 }),
    }),
    row({
      words: `gate add ${ONE} nothing`,
      ask: ({ gate }) => gate.add({ issue: ONE, gates: ["nothing"] }),
    }),
    row({
      words: "land add main --target main",
      ask: ({ land }) => land.add({ branches: ["main"], target: "main" }),
    }),
    row({
      words: "land list",
      ask: ({ land }) => land.list(),
      json: ({ entries, pauses }) => ({
        entries: entries.map(entryJson),
        paused: pauses.map(queuePauseJson),
      }),
    }),
    row({
      words: "land pause --reason release",
      agent: EVA,
      ask: ({ land }) => land.pause({ reason: "release" }),
      json: ({ pause, changed }) => ({ ...queuePauseJson(pause), changed }),
    }),
    row({ words: "land pause", agent: EVA, ask: ({ land }) => land.pause({ reason: undefined }) }),
    row({ words: "land retry nothing", ask: ({ land }) => land.retry({ entry: "nothing" }) }),
    row({ words: "worktree init", ask: ({ worktree }) => worktree.init() }),
    row({
      words: "worktree lock --ttl 300",
      ask: ({ worktree }) => worktree.lock({ ttlSecs: 300 }),
    }),
    row({
      words: "worktree unlock",
      before: [`${ADA} worktree lock`],
      ask: ({ worktree }) => worktree.unlock({}),
    }),
    row({ words: "worktree access shared", ask: ({ worktree }) => worktree.access({ mode: "shared" }) }),
    row({
      words: "worktree remove .",
      ask: ({ worktree }) => worktree.remove({ worktree: "." }),
    }),
    row({
      words: "worktree remove elsewhere",
      ask: ({ worktree }) => worktree.remove({ worktree: "elsewhere" }),
    }),
    row({
      words: "snapshot --message before --tag one",
      ask: ({ snapshot }) => snapshot({ message: "before", tags: ["one"] }),
    }),
    row({ words: "snapshot --tag a/b", ask: ({ snapshot }) => snapshot({ tags: ["a/b"] }) }),
    row({
      words: "snapshot --consistency none",
      ask: ({ snapshot }) => snapshot({ consistency: "none" }),
    }),
    row({
      words: "restore nothing --path ../x",
      ask: ({ restore }) => restore({ snapshot: "nothing", path: "../x" }),
    }),
    row({
      words: "publish --branch work --message change --delete a.txt",
      before: [`${ADA} lock acquire a.txt`],
      ask: ({ publish }) => publish({ branch: "work", message: "change", named: { deletes: ["a.txt"] } }),
    }),
    row({
      words: "publish --branch main --message change --delete a.txt",
      before: [`${ADA} lock acquire a.txt`],
      ask: ({ publish }) => publish({ branch: "main", message: "change", named: { deletes: ["a.txt"] } }),
    }),
    row({ words: "trust", ask: ({ trust }) => trust() }),
    row({ words: "trust --list", ask: ({ trust }) => trust({ action: "list" }) }),
    row({
      words: "config set coordination.default_ttl_secs 1200",
      agent: EVA,
      ask: ({ config }) =>
        config.set({ key: "coordination.default_ttl_secs", text: "1200", isGlobal: false }),
    }),
    row({
      words: "config set coordination.default_ttl 1200",
      agent: EVA,
      ask: ({ config }) => config.set({ key: "coordination.default_ttl", text: "1200", isGlobal: false }),
    }),
    row({ words: "config get nothing", ask: ({ config }) => config.get({ key: "nothing" }) }),
    row({
      words: "status",
      before: [`${BOB} lock acquire a.txt`, `${ADA} claim acquire ${ONE}`],
      ask: ({ status }) => status(),
      json: statusData,
    }),
    row({
      words: "guard check a.txt",
      before: [`${BOB} lock acquire a.txt`],
      ask: ({ guard }) => guard.check({ paths: ["a.txt"], patienceMs: 0 }),
    }),
    row({
      words: "guard settle nothing",
      agent: EVA,
      ask: ({ guard }) => guard.settle({ violations: ["nothing"] }),
    }),
    row({ words: "sync --status", ask: ({ sync }) => sync({ action: "status" }) }),
    row({ words: "dispatch stop", ask: ({ dispatch }) => dispatch.stop({ how: "drain" }) }),
    row({ words: `dispatch logs ${ONE}`, ask: ({ dispatch }) => dispatch.logs({ issue: ONE }) }),
    row({ words: "events --limit 0", ask: ({ events }) => events({ limit: 0 }) }),
    row({ words: "search login", ask: ({ search }) => search({ words: ["login"] }) }),
    row({ words: "query all --state nonsense", ask: ({ query }) => query.all({ states: ["nonsense"] }) }),
    row({ words: "recover", agent: EVA, ask: ({ recover }) => recover() }),
  ]);
});
