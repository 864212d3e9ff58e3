import { describe, expect, it } from "vitest";
import { readCommand } from "../../src/features/guard/shell/walk";

/**
 * `mode path`, as seen from where the shell stands by then, `?` for what cannot be told; for what has no path of its own,
 * `checkout`, `stash`, `worktree` or `own`, and where.
 */
function written(command: string): string[] {
  const { writes } = readCommand(command, { cwd: "/r", home: "/people/ada", root: "/r" });
  return writes.flatMap(({ value, mode, cwd, names, use, isPathUnlessCommit, patch }) => {
    if (use !== undefined) {
      const { kind, branch, base, which } = use;
      const words = [kind, cwd ?? "?", branch === null ? "" : `-b ${branch}`, base ?? "", which ?? ""];
      return [[...words, isPathUnlessCommit === true ? "or path" : ""].filter(Boolean).join(" ")];
    }
    return (value ?? ["?"]).map((path) => {
      const whole = path.startsWith("/") || path === "?" ? path : `${cwd ?? "?"}/${path}`;
      const into = names === undefined ? "" : ` < ${names.map((name) => name?.join("|") ?? "?").join(",")}`;
      return `${patch === undefined ? mode : "patch"} ${whole}${into}${isPathUnlessCommit === true ? " or commit" : ""}`;
    });
  });
}

const known = (command: string) => readCommand(command, { cwd: "/r", home: null }).isKnown;

describe("what a shell command writes", () => {
  it.each<[string, string[]]>([
    ["echo x > a", ["take /r/a"]],
    ["echo x >> a 2>err", ["take /r/a", "take /r/err"]],
    ["echo x &> a; echo y >| b", ["take /r/a", "take /r/b"]],
    ["cmd 2>&1 >&2 </dev/null 3>&-", []],
    ["cat < in", []],
    ["echo x > 'it s' > \"b c\" > d\\ e", ["take /r/it s", "take /r/b c", "take /r/d e"]],
    ["cat <<EOF > out\nhello $(echo y > inner)\nEOF", ["take /r/inner", "take /r/out"]],
    ["cd src && echo x > a && cd .. && touch b", ["take /r/src/a", "take /r/b"]],
    ["(cd src; echo x > a); echo y > b", ["take /r/src/a", "take /r/b"]],
    ["cd $WHERE && echo x > a", ["take ?/a"]],
    ["{ cd src; }; echo > a", ["take /r/src/a"]],
    ["if true; then cd x; fi; echo > a", ["take ?/a"]],
    ["true && false || echo x > a", ["take /r/a"]],
    ["ls | tee -a a b | sort -o c", ["take /r/a", "take /r/b", "take /r/c"]],
    ["sed -i 's/a/b/' x y", ["take /r/x", "take /r/y"]],
    ["sed -i.bak -e s/a/b/ x", ["take /r/x"]],
    ["sed -Ei 's/(a)/b/' x", ["take /r/x"]],
    ["sed -i '' s/a/b/ x", ["take /r/x"]],
    ["sed --in-place s/a/b/ x", ["take /r/x"]],
    ["sed -E -i 's/(a)/b/' x", ["take /r/x"]],
    ["sed -n -i -e s/a/b/ -f y x", ["take /r/x"]],
    ["sed s/a/b/ x", []],
    ["perl -pi -e 's/a/b/' x", ["take /r/x"]],
    ["perl -i -pe 's/a/b/' x", ["take /r/x"]],
    ["cp a b", ["take /r/b < a"]],
    ["cp a b dir/", ["take /r/dir/ < a,b"]],
    ["cp -t dir a b", ["take /r/dir < a,b"]],
    ["mv a b", ["take /r/a", "take /r/b < a"]],
    ["rm -rf a b", ["take /r/a", "take /r/b"]],
    ["rm -- -a", ["take /r/-a"]],
    ["dd if=/dev/zero of=a count=1", ["take /r/a"]],
    ["truncate -s 0 a", ["take /r/a"]],
    ["touch ~/a $HOME/b", ["take /people/ada/a", "take /people/ada/b"]],
    ["F=a; echo x > $F", ["take /r/a"]],
    ["F=a echo x > $F", ["take ?"]],
    ["for f in a b; do echo x > $f; done", ["take /r/a", "take /r/b"]],
    ["touch {a,b}.ts", ["take /r/a.ts", "take /r/b.ts"]],
    ["echo x > $(mktemp)", ["take /tmp/tmp.XXXXXXXXXX"]],
    ["echo x > $(cat name)", ["take ?"]],
    ["diff <(sort a) <(tee b < c)", ["take /r/b"]],
    ["bash -c 'cd src; echo x > a'; echo y > b", ["take /r/src/a", "take /r/b"]],
    ['bash -lc "echo x > a"', ["take /r/a"]],
    ["eval 'echo x > a'", ["take /r/a"]],
    ["sudo -u bob env A=b timeout 5 nice -n 3 tee a", ["take /r/a"]],
    ["find src -name '*.ts' -delete", ["look /r/src"]],
    ["find . -exec rm {} +", ["look /r/."]],
    ["find . -name x", []],
    ["curl -o a http://x.invalid && wget -O b http://y.invalid", ["take /r/a", "take /r/b"]],
    ["git checkout -- a b", ["take /r/a", "take /r/b"]],
    ["git checkout HEAD~1 a", ["take /r/HEAD~1 or commit", "take /r/a"]],
    ["git checkout a b", ["take /r/a or commit", "take /r/b"]],
    ["git checkout main", ["checkout /r main or path"]],
    ["git checkout src/*.ts", ["take /r/src/\ue000.ts"]],
    ["git checkout {a,b}", ["checkout /r a or path", "checkout /r b or path"]],
    ["git checkout .", ["checkout /r . or path"]],
    ["git checkout $X", ["checkout /r or path"]],
    ["git checkout --detach", ["checkout /r"]],
    ["git checkout", []],
    ["git checkout -b topic", ["checkout /r -b topic"]],
    ["git checkout -b topic origin/main", ["checkout /r -b topic origin/main"]],
    ["git checkout -b $NAME", ["checkout /r"]],
    ["git switch -c topic", ["checkout /r -b topic"]],
    ["git switch main", ["checkout /r main"]],
    ["cd sub && git switch -", ["checkout /r/sub -"]],
    ["git restore a", ["take /r/a"]],
    ["git restore --staged a", ["own /r"]],
    ["git restore --pathspec-from-file=x", ["take ?"]],
    ["git restore --source=HEAD~1 --staged --worktree a", ["take /r/a"]],
    ["git stash", ["checkout /r"]],
    ["git stash push -- a", ["checkout /r", "take /r/a"]],
    ["git stash drop", ["checkout /r", "stash /r 0"]],
    ["git stash drop stash@{2}", ["checkout /r", "stash /r stash@{2}"]],
    ["git stash drop $N", ["checkout /r", "stash /r"]],
    ["git stash clear", ["checkout /r", "stash /r"]],
    ["git stash apply", ["checkout /r"]],
    ["git stash branch x", ["checkout /r -b x", "stash /r 0"]],
    ["git stash list", []],
    ["git stash pop", ["checkout /r", "stash /r 0"]],
    ["git reset --hard HEAD~1", ["checkout /r"]],
    ["git reset", ["checkout /r"]],
    ["git reset HEAD~1", ["own /r", "checkout /r HEAD~1 or path"]],
    ["git reset -- a", ["own /r"]],
    ["git reset HEAD a", ["own /r"]],
    ["git reset a", ["own /r", "checkout /r a or path"]],
    ["git clean -fd", ["checkout /r"]],
    ["git clean -fd sub", ["look /r/sub"]],
    ["git branch -m new", ["checkout /r"]],
    ["git branch new", []],
    ["git symbolic-ref HEAD refs/heads/x", ["checkout /r"]],
    ["git symbolic-ref HEAD", []],
    ["git clean -n", []],
    ["git -C sub rm a && git mv b c", ["take /r/sub/a", "take /r/b", "take /r/c < b"]],
    ["git rm --cached a", ["own /r"]],
    ["git -c x=y pull --rebase", ["checkout /r"]],
    ["git -C ../other stash", ["checkout /r/../other"]],
    ["git commit -am x && git push", ["own /r"]],
    ["apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n*** End Patch\nEOF", ["take /r/a"]],
    ["while read l; do echo $l >> out; done < in", ["take /r/out"]],
    ["case $x in a) rm b;; *) touch c;; esac", ["take /r/b", "take /r/c"]],
    ["f() { echo x > a; }; f", ["take /r/a"]],
    // Functions run where, and with what, they are called.
    ["f() { git stash; }; cd sub; f", ["checkout /r/sub"]],
    ["f() { echo > $1; rm $2; }; f a b", ["take /r/a", "take /r/b"]],
    ['f() { rm "$@"; }; f a b', ["take /r/a", "take /r/b"]],
    ["f() { git stash; }", []],
    ["f() { f; f; }; f", []],
    ["trap 'rm a' EXIT", ["take /r/a"]],
    // Where the shell stands.
    ["cd sub; echo > a; cd -; echo > b", ["take /r/sub/a", "take /r/b"]],
    ["pushd sub; echo > a; popd; echo > b", ["take /r/sub/a", "take /r/b"]],
    ["cd sub && echo > $OLDPWD/a", ["take /r/a"]],
    ["cd a || cd b; echo > c", ["take ?/c"]],
    ["cd a || exit 1; echo > c", ["take /r/a/c"]],
    ['cd "$(git rev-parse --show-toplevel)" && echo > a', ["take /r/a"]],
    ["cd sub; echo > $(pwd)/a", ["take /r/sub/a"]],
    ["cd $X && git stash", ["checkout ?"]],
    ["cd $(mktemp -d) && git stash", ["checkout /tmp/tmp.XXXXXXXXXX"]],
    ["env -C sub A=b rm a", ["take /r/sub/a"]],
    ["sudo -D /o A=b rm a", ["take /o/a"]],
    // Programs that run others, and files that hide in options.
    ["ls | xargs rm", ["take ?"]],
    ["git ls-files | xargs -n1 sed -i s/a/b/", ["take ?"]],
    ["ls | xargs -I{} cp {} sub/{}", ["take ? < ?"]],
    ["flock x git stash; flock x -c 'rm a'", ["checkout /r", "take /r/a"]],
    ["command -v rm a", []],
    ["bash <<'E'\nrm a\nE\n", ["take /r/a"]],
    ["bash <<< 'rm a'", ["take /r/a"]],
    ["cat <<< a", []],
    ["cp -rt sub a", ["take /r/sub < a"]],
    ["mv -t sub a", ["take /r/a", "take /r/sub < a"]],
    ["ln -sf a b; install -m 644 a c", ["take /r/b < a", "take /r/c < a"]],
    ["rsync -a x/ sub", ["look /r/sub"]],
    ["patch a < x.diff", ["take /r/a"]],
    ["uniq a b; xxd -r a c; tree -o d", ["take /r/b", "take /r/c", "take /r/d"]],
    ["awk -i inplace '{print}' a", ["take /r/a"]],
    ["yq -i .x=1 a", ["take /r/a"]],
    ["find . -exec grep -q x {} \\; -exec rm {} \\;", ["look /r/."]],
    ["find . -fprint a", ["take /r/a"]],
    ["echo x &>> a; echo y >& b; : <> c", ["take /r/a", "take /r/b", "take /r/c"]],
    ["tee >(cat > a) < b", ["take /r/a", "take /dev/fd/63"]],
    // Git past its everyday commands, and in other places.
    ["git add a; git commit -m x", ["own /r", "own /r"]],
    ["git -C /o add a; git -C /o -C sub commit", ["own /o", "own /o/sub"]],
    ["git --git-dir=/o/.git --work-tree=/o commit", ["own /o"]],
    ["git --git-dir=/o/.git stash", ["checkout /o"]],
    ["GIT_DIR=/o/.git git stash; env GIT_WORK_TREE=/p git stash", ["checkout /o", "checkout /p"]],
    ["git update-ref HEAD x", ["checkout /r"]],
    ["git update-ref refs/heads/main x", ["checkout /r refs/heads/main"]],
    ["git update-ref -d refs/stash", ["stash /r"]],
    ["git update-ref refs/tags/x y", []],
    ["git symbolic-ref -d HEAD", ["checkout /r"]],
    ["git read-tree -u --reset x", ["checkout /r"]],
    ["git checkout-index -f -a", ["checkout /r"]],
    ["git checkout-index -f a", ["take /r/a"]],
    ["git reflog expire --expire=now --all", ["stash /r"]],
    ["git reflog", []],
    ["git worktree remove --force ../w", ["worktree /r ../w"]],
    ["git worktree move ../w ../v", ["worktree /r ../w"]],
    ["git worktree remove $W", ["worktree /r"]],
    ["git worktree add ../w", []],
    ["git checkout -btopic; git switch --create=x", ["checkout /r -b topic", "checkout /r -b x"]],
    ["git am x; git cherry-pick y; git revert z; git merge w", Array(4).fill("checkout /r")],
    ["git apply x; git apply --cached x; git apply --check x", ["checkout /r", "patch /r/x", "own /r"]],
    ["git diff --output=a; git archive -o b HEAD", ["take /r/a", "take /r/b"]],
    ["echo x > /dev/null", ["take /dev/null"]],
  ])("%s", (command, expected) => {
    expect(written(command)).toEqual(expected);
  });

  it("is read through Git's aliases, however deep", () => {
    const aliases = new Map([
      ["co", "checkout"],
      ["save", "!git stash && git co"],
      ["loop", "loop"],
    ]);
    const read = (command: string) =>
      readCommand(command, { cwd: "/r/sub", home: null, root: "/r", aliases });
    expect(read("git co -b 'a b'").writes).toMatchObject([{ use: { kind: "checkout", branch: "a b" } }]);
    expect(read("git -C /o save x").writes).toMatchObject([
      { cwd: "/r", use: { command: "git stash" } },
      { cwd: "/r", use: { command: "git checkout x" } },
    ]);
    expect(read("git loop")).toMatchObject({ writes: [], isKnown: false, verbs: ["loop"] });
    expect(read("git status; git stash").verbs).toEqual([]);
  });

  it("is known to be all for commands that only look, and unknown for what runs others' programs", () => {
    for (const command of [
      "ls -la",
      "git status && git log",
      "grep -r x . | head",
      "cat a > b",
      "sed -n 1p a",
      "git stash list",
      "git commit -m x",
      "mkdir -p x && find . -name y",
      "f() { make; }",
      "awk '{print $1}' a",
      "ln -s a b",
      "ln -sf a b c d/",
      "cp -fp a b",
      "find . -delete",
      ...["git apply --check x", "git reset HEAD~1", "git read-tree x", "git branch -m x", "git stash drop"],
    ])
      expect(known(command), command).toBe(true);
    for (const command of [
      "npm test",
      "python3 x.py",
      "make",
      "./run",
      "$CMD",
      "rm $X",
      "ls; npm i",
      "xargs rm",
      "eval $X",
      "git ls-files | xargs sed -i s/a/b/",
      "ls | xargs -I{} rm {}",
      "cp $X sub/",
      "cd $X && rm a",
      "cd $X && echo > a",
      "awk '{print > $1}' a",
      "sed -n 'w out' a",
      "fd -x rm",
      "f() { make; }; f",
      "git submodule update",
      "cat x | bash",
      "bash < x",
      // A link may lead what is written besides anywhere.
      "ln -s a b && echo > c",
      "echo > c; ln -s a b",
      "for f in a a/b; do ln -s x $f; done",
      "ln -s $X b",
      "ln a b",
      "cp -l a b",
      // What comes along cannot be told.
      "cp -r a b",
      "cp --archive a b",
      "rsync -a a/ b",
      "git checkout -- a",
      "git restore --source=x a",
      "find a -exec cp b c \\;",
      ...[
        "git apply x",
        "git apply < x",
        "git am x",
        "git merge",
        "git merge --squash x",
        "git cherry-pick -n x",
      ],
      ...["git stash pop", "git read-tree -u --reset x", "git checkout x", "git pull", "git reset --hard"],
    ])
      expect(known(command), command).toBe(false);
  });

  it("is not looked for in what is no shell command, and nothing goes wrong", () => {
    for (const command of [
      "",
      "   ",
      "((",
      "'",
      '"$(',
      "<<EOF",
      "for",
      "if then fi",
      "echo > ",
      "\0\u{1f600}",
      "}{",
      "$((1+",
      "a\\",
    ])
      expect(() => written(command), command).not.toThrow();
    expect(readCommand(`echo ${"x".repeat(5_000_000)} > a`, { cwd: "/r", home: null })).toEqual({
      writes: [],
      isKnown: false,
      verbs: [],
    });
    // A file in a here-document is not too long.
    expect(written(`cat > a <<'E'\n${"a line\n".repeat(100_000)}E\n`)).toEqual(["take /r/a"]);
    const names = [..."abcdefghijklmno"];
    const calls = names.map((name, i) => `${name}() { ls; ${`${names[i - 1] ?? "ls"}; `.repeat(3)} }`);
    expect(known([...calls, "o"].join("\n")), "functions that call each other without end").toBe(false);
    for (const nest of ["{", "$(", "$((", "{ "])
      expect(known(nest.repeat(100_000)), "what would keep the parser busy for minutes").toBe(false);
    const deep = "bash -c '".repeat(40);
    expect(known(deep)).toBe(false);
  });
});
