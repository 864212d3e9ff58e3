import * as fs from "node:fs";
import * as path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Watched } from "../../src/coordinator/watched";
import { WatchedIssues } from "../../src/daemon/watched-issues";
import { until } from "../support/program";
import { scratch } from "../support/scratch";

const A = "01HZZZZZZZZZZZZZZZZZZZZZZA";
const B = "01HZZZZZZZZZZZZZZZZZZZZZZB";
const C = "01HZZZZZZZZZZZZZZZZZZZZZZC";

let room: string;
let folder: string;
let watched: WatchedIssues;
const question = () => ({ path: `${room}/cache`, folders: [folder] });
const file = (id: string, name = "issue.json") => path.join(folder, id, name);

beforeEach(() => {
  room = scratch();
  folder = path.join(room, "issues");
  fs.mkdirSync(folder);
  for (const id of [A, B]) {
    fs.mkdirSync(path.join(folder, id));
    fs.writeFileSync(file(id), "{}");
  }
  watched = new WatchedIssues(`${room}/cookies`);
});
afterEach(() => watched.close());

const ask = () => watched.ask(question());
/** Until it is sure of the folder. */
const sure = (of = watched) =>
  until("it is sure", async () => (await of.ask(question())) ?? false) as Promise<Watched>;
/** It knows a cache that was true just now. */
async function told(): Promise<void> {
  const answer = await sure();
  watched.tell(question(), { ...answer, cache: "one" });
  expect(await changed()).toEqual([]);
}
async function changed(): Promise<readonly string[] | null> {
  const answer = await ask();
  return answer?.cache === "one" ? [...answer.places[0]!.changed].sort() : null;
}

describe.runIf(process.platform === "linux")("watched issues", () => {
  it("are looked at by everybody until somebody has said of a cache that it is true", async () => {
    expect(await ask()).toBeNull();
    const answer = await sure();
    expect(answer).toMatchObject({ cache: null, places: [] });
    watched.tell(question(), { ...answer, cache: "one" });
    expect(await ask()).toMatchObject({
      cache: "one",
      places: [{ inode: fs.statSync(folder).ino, changed: [] }],
    });
  });

  const CHANGES: Readonly<Record<string, { make: () => void; of: readonly string[] }>> = {
    "a file that is written in place": { make: () => fs.writeFileSync(file(A), "{ }"), of: [A] },
    "a file that is appended to": {
      make: () => fs.appendFileSync(file(A, "deps.or-set.jsonl"), "x"),
      of: [A],
    },
    "a file that is replaced by rename": {
      make: () => {
        fs.writeFileSync(file(B, "new"), "{ }");
        fs.renameSync(file(B, "new"), file(B));
      },
      of: [B],
    },
    "a file that takes the place of another issue's": {
      make: () => fs.renameSync(file(A), file(B)),
      of: [A, B],
    },
    "a file whose time is set": { make: () => fs.utimesSync(file(A), 1, 1), of: [A] },
    "a file that is removed": { make: () => fs.rmSync(file(A)), of: [A] },
    "an issue that is removed": { make: () => fs.rmSync(path.join(folder, A), { recursive: true }), of: [A] },
    "an issue that comes, with its file": {
      make: () => {
        fs.mkdirSync(path.join(folder, C));
        fs.writeFileSync(file(C), "{}");
      },
      of: [C],
    },
    "an issue's directory that takes another's place": {
      make: () => {
        fs.rmSync(path.join(folder, A), { recursive: true });
        fs.renameSync(path.join(folder, B), path.join(folder, A));
      },
      of: [A, B],
    },
    "a link in an issue's place": {
      make: () => {
        fs.renameSync(path.join(folder, A), path.join(room, "elsewhere"));
        fs.symlinkSync("../elsewhere", path.join(folder, A));
      },
      of: [A],
    },
  };
  it.each(Object.entries(CHANGES))("PROTOCOL 28: name %s at once", async (_, { make, of }) => {
    await told();
    // Not one turn of the event loop between the change and the question.
    make();
    expect(await changed()).toEqual(of);
    // And it stays so until somebody has looked.
    expect(await changed()).toEqual(of);
  });

  it("name what is changed in a directory that was made anew", async () => {
    await told();
    fs.rmSync(path.join(folder, A), { recursive: true });
    fs.mkdirSync(path.join(folder, A));
    fs.writeFileSync(file(A), "{}");
    const answer = (await ask())!;
    watched.tell(question(), { ...answer, cache: "one" });
    expect(await changed()).toEqual([]);
    fs.writeFileSync(file(A), "{ }");
    expect(await changed()).toEqual([A]);
  });

  it("name a link always: what it leads to is not watched", async () => {
    fs.renameSync(path.join(folder, A), path.join(room, "elsewhere"));
    fs.symlinkSync("../elsewhere", path.join(folder, A));
    const answer = await sure();
    watched.tell(question(), { ...answer, cache: "one" });
    expect(await changed()).toEqual([A]);
  });

  it("count as changed what changes between the answer and the word that a cache is true", async () => {
    const answer = await sure();
    fs.writeFileSync(file(A), "{ }");
    expect(await ask()).not.toBeNull();
    watched.tell(question(), { ...answer, cache: "one" });
    expect(await changed()).toEqual([A]);
  });

  it("are not known any more once their directory was moved or removed, though another takes its place", async () => {
    await told();
    fs.renameSync(folder, `${folder}-away`);
    fs.mkdirSync(folder);
    expect(await changed()).toBeNull();
    expect(watched.status().folders).toMatchObject([{ standing: "unsure", why: "it was moved or removed" }]);
  });

  it("are not known after more changes at once than the kernel may have kept", async () => {
    watched.close();
    watched = new WatchedIssues(`${room}/cookies`, 64);
    await told();
    // Each in another directory than the one before: what is like the last one in the queue is not queued again.
    for (let n = 0; n < 20; n++) fs.appendFileSync(file(n % 2 === 0 ? A : B), "x");
    expect(await changed()).toBeNull();
    // Anew, and nothing that was said before counts.
    const answer = await sure();
    expect(answer.cache).toBeNull();
  });

  it("forget what was said in another life", async () => {
    const answer = await sure();
    watched.tell(question(), { ...answer, epoch: "another", cache: "one" });
    expect(await changed()).toBeNull();
  });

  it("are not watched where there is no directory, or only a link to one", async () => {
    const link = path.join(room, "link");
    fs.symlinkSync(folder, link);
    for (const place of [link, path.join(room, "nowhere")]) {
      const about = { path: `${room}/cache`, folders: [place] };
      expect(await watched.ask(about)).toBeNull();
      await until("it was tried", () =>
        watched.status().folders.some((each) => each.folder === place && each.standing === "unsure"),
      );
      expect(await watched.ask(about)).toBeNull();
    }
  });

  it("are not trusted where the kernel's queue is not known", async () => {
    const elsewhere = new WatchedIssues(`${room}/others`, null);
    expect(await elsewhere.ask(question())).toBeNull();
    expect(elsewhere.status().folders).toEqual([]);
  });

  it("leave nothing behind", async () => {
    await told();
    watched.close();
    expect(fs.readdirSync(room)).toEqual(["issues"]);
  });
});
