/**
 * Writes src/features/publish/secret-rules.json: rules for secrets of gitleaks, as data, in a form that JavaScript can run, and the two
 * of Nosey Parker for passwords in quotes, which gitleaks passes over unless they look random.
 *
 *   node scripts/secret-rules.mjs <a checkout of gitleaks>/config/gitleaks.toml <its version>
 *
 * Taken are the rules whose secrets name themselves (`sk_live_…`, `AIza…`) and the generic one. Left out: rules that need
 * the name of a service nearby, which the generic one mostly sees as well, and rules that are no single expression.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
import { ROOT, say } from "./project.mjs";

const [file, version] = process.argv.slice(2);
if (version === undefined) throw new Error("usage: node scripts/secret-rules.mjs <gitleaks.toml> <version>");
const { rules, allowlist } = parse(readFileSync(file, "utf8"));

/** What stands before the name of a secret; nothing depends on it, and it takes the square of the time. */
const CONTEXT = /^\(\?i\)\[\\w\.-\]\{0,50\}\?/;
/** Matched backwards, these take time that grows with the square of the text. */
const UNBOUNDED = ["curl-auth-header", "curl-auth-user", "kubernetes-secret-yaml", "private-key"];

const taken = rules.filter(
  ({ id, regex }) =>
    regex !== undefined &&
    !UNBOUNDED.includes(id) &&
    (id === "generic-api-key" || !/\[\\w\.-\]\{0,50\}\?/.test(regex)),
);

/** Go's expressions have switches inside; here a rule ignores case as a whole or not at all. */
function translated(source) {
  const bare = source
    .replace(CONTEXT, "(?i)")
    .replaceAll("(?-i:", "(?:")
    .replaceAll("(?P<", "(?<")
    .replaceAll("\\z", "$");
  const flags = /\(\?i[:)]/.test(bare) ? "i" : "";
  const regex = bare.replaceAll("(?i)", "").replaceAll("(?i:", "(?:");
  new RegExp(regex, flags);
  return { regex, flags };
}

/** np.generic.5 and np.generic.6 of Nosey Parker v0.24.0, without their comments. */
const PASSWORDS = [`"`, `'`].map((quote) => ({
  id: "generic-password",
  regex: `password["']?[ \\t]*(?:=|:|:=|=>)[ \\t]*${quote}([^$<%@.,\\s+'"(){}&/#\\-][^\\s+'"(){}/]{4,})${quote}`,
  flags: "i",
  keywords: ["password"],
}));

const listed = (list) => (list ?? []).map(translated);
const allowed = ({ condition, regexTarget, paths, regexes, stopwords }) => ({
  ...(condition === "AND" ? { all: true } : {}),
  ...(regexTarget === undefined ? {} : { target: regexTarget }),
  ...(paths === undefined ? {} : { paths: listed(paths) }),
  ...(regexes === undefined ? {} : { regexes: listed(regexes) }),
  ...(stopwords === undefined ? {} : { stopwords }),
});

const data = {
  from: [
    `gitleaks ${version}, https://github.com/gitleaks/gitleaks, config/gitleaks.toml; MIT License, Copyright (c) 2019 Zachary Rice`,
    "generic-password: Nosey Parker v0.24.0, https://github.com/praetorian-inc/noseyparker, generic.yml; Apache License 2.0",
  ],
  allow: [allowed(allowlist)],
  rules: [
    ...taken.map(({ id, regex, entropy, secretGroup, keywords, path, allowlists }) => ({
      id,
      ...translated(regex),
      ...(entropy === undefined ? {} : { entropy }),
      ...(secretGroup === undefined ? {} : { group: secretGroup }),
      ...(path === undefined ? {} : { path: translated(path) }),
      keywords,
      ...(allowlists === undefined ? {} : { allow: allowlists.map(allowed) }),
    })),
    ...PASSWORDS,
  ],
};

/** A line for each, so that a new version shows what it changes. */
const lines = Object.entries(data).map(([name, list]) => {
  const entries = list.map((entry) => `  ${JSON.stringify(entry)}`).join(",\n");
  return `${JSON.stringify(name)}: [\n${entries}\n]`;
});
writeFileSync(join(ROOT, "src/features/publish/secret-rules.json"), `{\n${lines.join(",\n")}\n}\n`);
say(`${data.rules.length} of ${rules.length} rules of gitleaks ${version}`);
