import { execFileSync } from "node:child_process";
import * as fs from "node:fs";
import { describe, expect, it } from "vitest";
import { findSecrets } from "../../src/features/publish/secrets";
import { Scene } from "../git/scene";

const bytes = (text: string) => new TextEncoder().encode(text);
const OID = "ab".repeat(20);
const PEM = (bits: string[]) =>
  execFileSync("openssl", bits, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });

/** In pieces, so that no scanner takes this file for what it tests. */
const SAMPLES: Readonly<Record<string, () => string>> = {
  "private keys": () => PEM(["genpkey", "-algorithm", "ed25519"]),
  "AWS key ids": () => `id = "AKIA${"Z5X7Q2M4K6J3N6PQ"}"`,
  "AWS secret keys": () => `aws_secret_access_key = "${"wJalrXUtnFEMI/K7MDENG+bPxRfiCY"}zzQ4zzZzzz"`,
  "Google API keys": () => `const maps = "AIza${"SyD4Vf9hJq3kLmNpQrStUvWxYz012345678"}";`,
  "Google service accounts": () =>
    `{"type": "service_account", "private_key": ${JSON.stringify(PEM(["genrsa", "-traditional", "1024"]))}}`,
  "Stripe keys": () => `stripe("sk_live_${"51H8xYzAbCdEfGhIjKlMnOpQr"}")`,
  "JSON Web Tokens": () =>
    `eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.${"dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"}`,
  "passwords in quotes": () => `db_password = "${"hunter2!"}"`,
  "keys, tokens and secrets that look random": () => `api_key: "${"q8Zk3Wv9Lx2Nf7Rt5Yb1"}"`,
  "logins in URLs": () => `${"https:"}//ada:${"s3cretWord"}@example.org/x`,
  "database URLs": () => `postgres://ada:${"s3cretWord"}@db.example.org:5432/x`,
  "GitHub tokens": () => `ghp_${"a1B2".repeat(9)}`,
  "GitLab tokens": () => `glpat-${"x7Kq2Mw9Zr4Tn8Vb1Lc5"}`,
  "npm tokens": () => `npm_${"aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"}`,
  "PyPI tokens": () => `pypi-AgEIcHlwaS5vcmc${"aB3dE5fG7hJ9".repeat(6)}`,
  "Slack tokens": () => `xoxb-${"123456789012"}-${"1234567890123"}-${"aB3dE5fG7hJ9kL1mN3pQ5rS7"}`,
  "OpenAI keys": () => `sk-proj-${"aB3dE5fG7h".repeat(7)}aB3dT3BlbkFJ${"aB3dE5fG7h".repeat(7)}aB3d`,
  "Anthropic keys": () => `sk-ant-api03-${"aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1x".repeat(3)}AA`,
  "SendGrid keys": () => `SG.${"aB3dE5fG7hJ9kL1mN3pQ5r"}.${"aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9f"}`,
  "Twilio keys": () => `SK${"0123456789abcdef".repeat(2)}`,
  "DigitalOcean tokens": () => `dop_v1_${"0123456789abcdef".repeat(4)}`,
};

const look = async (text: string | Uint8Array, before = "", allowed: string[] = [], path = "src/a.ts") => {
  const objects = new Scene().database();
  const old = await objects.writeBlob(bytes(before));
  const content = typeof text === "string" ? bytes(text) : text;
  const draft = new Map([[path, { mode: "100644", content, oid: OID }]]);
  return findSecrets(objects, draft, new Map([[path, { mode: "100644", oid: old }]]), {
    patterns: allowed,
    untrusted: null,
  });
};

describe("secrets", () => {
  it("that PUBLISH.md says are found, and no others, have a sample here", () => {
    const page = fs.readFileSync("docs/PUBLISH.md", "utf8");
    const [, table = ""] = page.split("| secrets that are found |");
    const rows = table
      .split("\n\n")[0]!
      .split("\n")
      .slice(2)
      .map((row) => row.split("|")[1]!.trim());
    expect(rows).toEqual(Object.keys(SAMPLES));
  });

  it.each(Object.entries(SAMPLES))("are found: %s", async (_, make) => {
    const sample = make();
    const found = await look(`first line\n${sample}\n`);
    expect(found).toHaveLength(1);
    expect(found).toMatchObject([{ path: "src/a.ts" }]);
    const secrets = sample.match(/[\w+/]{12,}/g) ?? [sample];
    for (const secret of secrets) expect(JSON.stringify(found)).not.toContain(secret);
    expect(await look(`first line\n${sample}\n`, "", ["src/"])).toEqual([]);
  });

  it.each([
    ["an RSA key", () => PEM(["genrsa", "-traditional", "1024"])],
    ["an Ed25519 key", () => PEM(["genpkey", "-algorithm", "ed25519"])],
    [
      "an EC key, after a line of text",
      () => `const k = \`\n${PEM(["ecparam", "-genkey", "-name", "prime256v1", "-noout"])}\`;`,
    ],
    ["a GitHub token", () => `ghp_${"a1B2".repeat(9)}`],
  ])("are found: %s", async (_, make) => {
    const [found] = await look(make());
    expect(found).toMatchObject({ path: "src/a.ts" });
    expect(JSON.stringify(found)).not.toMatch(/a1B2|MII|MC4/);
  });

  it("are named by their line", async () => {
    expect(await look(`one\ntwo\n${PEM(["genpkey", "-algorithm", "ed25519"])}`)).toMatchObject([{ line: 3 }]);
  });

  it.each<[string, string | Uint8Array]>([
    [
      "a public key",
      "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n",
    ],
    ["words about one", "-----BEGIN PRIVATE KEY----- is how it begins"],
    ["what is binary", new Uint8Array([0, ...bytes(`ghp_${"a1B2".repeat(9)}`)])],
    ["what somebody has looked at", `x = "ghp_${"a1B2".repeat(9)}" // secretlint-disable-line\n`],
    ["a password that somebody has looked at", `password = "${"made-up!"}" // secretlint-disable-line\n`],
    ["a name for one", 'password = "$DB_PASSWORD"; const token = "{{ secrets.token }}";\n'],
    ["a password that is read", "const password = readPassword(env, prompt);\n"],
    ["a hash in a lock file's place", `"integrity": "sha512-${"aB3dE5fG7hJ9".repeat(7)}=="\n`],
  ])("are not %s", async (_, text) => {
    expect(await look(text)).toEqual([]);
  });

  it("that were there before are somebody else's matter", async () => {
    const token = `ghp_${"a1B2".repeat(9)}`;
    expect(await look(`${token}\nmore\n`, `${token}\n`)).toEqual([]);
    expect(await look(`${token}\n`, "", ["src/"])).toEqual([]);
  });

  it("take no longer where a text is made to take for ever", async () => {
    expect(await look("-----BEGIN ".repeat(200_000))).toEqual([]);
    expect(await look(`-----BEGIN PRIVATE KEY-----\n${"Proc-Type: x\n".repeat(100_000)}`)).toEqual([]);
    for (const word of ["key", 'password="', "eyJ.ey", "secret_token = ", "xapp-1-", "sk_live_", "AKIA"])
      expect((await look(word.repeat(50_000))).length).toBeLessThan(2);
  });
});
