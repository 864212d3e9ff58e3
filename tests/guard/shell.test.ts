import { describe, expect, it } from "vitest";
import { readCommand } from "../../src/guard/shell/walk";

/** `mode path`, as seen from where the shell stands by then; `?` for what cannot be told. */
function written(command: string): string[] {
  const { writes } = readCommand(command, { cwd: "/r", home: "/people/ada" });
  return writes.flatMap(({ value, mode, cwd, names, everybody }) => {
    if (everybody !== undefined) {
      const { branch, base } = everybody;
      return [
        [`everybody ${cwd ?? "?"}`, branch === null ? "" : `-b ${branch}`, base ?? ""]
          .filter(Boolean)
          .join(" "),
      ];
    }
    return (value ?? ["?"]).map((path) => {
      const whole = path.startsWith("/") || path === "?" ? path : `${cwd ?? "?"}/${path}`;
      const into = names === undefined ? "" : ` < ${names.map((name) => name?.join("|") ?? "?").join(",")}`;
      return `${mode} ${whole}${into}`;
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
    ["cd src && echo x > a && cd .. && touch b", ["take /r/src/a", "take /r/src/../b"]],
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
    ["echo x > $(mktemp)", ["take ?"]],
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
    ["git checkout HEAD~1 a", ["take /r/a"]],
    ["git checkout main", ["everybody /r main"]],
    ["git checkout .", ["everybody /r ."]],
    ["git checkout --detach", ["everybody /r"]],
    ["git checkout", []],
    ["git checkout -b topic", ["everybody /r -b topic"]],
    ["git checkout -b topic origin/main", ["everybody /r -b topic origin/main"]],
    ["git checkout -b $NAME", ["everybody /r"]],
    ["git switch -c topic", ["everybody /r -b topic"]],
    ["git switch main", ["everybody /r main"]],
    ["cd sub && git switch -", ["everybody /r/sub -"]],
    ["git restore a", ["take /r/a"]],
    ["git restore --staged a", []],
    ["git restore --source=HEAD~1 --staged --worktree a", ["take /r/a"]],
    ["git stash", ["everybody /r"]],
    ["git stash push -- a", ["everybody /r", "take /r/a"]],
    ["git stash drop", ["everybody /r"]],
    ["git stash branch x", ["everybody /r -b x"]],
    ["git stash list", []],
    ["git stash pop", ["everybody /r"]],
    ["git reset --hard HEAD~1", ["everybody /r"]],
    ["git reset", ["everybody /r"]],
    ["git reset HEAD~1", ["everybody /r"]],
    ["git reset -- a", []],
    ["git reset HEAD a", []],
    ["git reset a", []],
    ["git clean -fd", ["everybody /r"]],
    ["git clean -fd sub", ["look /r/sub"]],
    ["git branch -m new", ["everybody /r"]],
    ["git branch new", []],
    ["git symbolic-ref HEAD refs/heads/x", ["everybody /r"]],
    ["git symbolic-ref HEAD", []],
    ["git clean -n", []],
    ["git -C sub rm a && git mv b c", ["take /r/sub/a", "take /r/b", "take /r/c < b"]],
    ["git rm --cached a", []],
    ["git -c x=y pull --rebase", ["everybody /r"]],
    ["git -C ../other stash", ["everybody /r/../other"]],
    ["git commit -am x && git push", []],
    ["apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n*** End Patch\nEOF", ["take /r/a"]],
    ["while read l; do echo $l >> out; done < in", ["take /r/out"]],
    ["case $x in a) rm b;; *) touch c;; esac", ["take /r/b", "take /r/c"]],
    ["f() { echo x > a; }; f", ["take ?/a"]],
    ["echo x > /dev/null", ["take /dev/null"]],
  ])("%s", (command, expected) => {
    expect(written(command)).toEqual(expected);
  });

  it("is known to be all for commands that only look, and unknown for what runs others' programs", () => {
    for (const command of [
      "ls -la",
      "git status && git log",
      "grep -r x . | head",
      "cat a > b",
      "sed -n 1p a",
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
    expect(readCommand(`echo ${"x".repeat(300_000)} > a`, { cwd: "/r", home: null })).toEqual({
      writes: [],
      isKnown: false,
    });
    const deep = "bash -c '".repeat(40);
    expect(known(deep)).toBe(false);
  });
});
