import type { TestPlant } from "../test-plants";

export const PLANTS: readonly TestPlant[] = [
  {
    name: "settling a write of an issue takes away what the next one has staged",
    file: "src/features/issues/folder.ts",
    from: "digest.slice(0, 16)",
    to: "digest.slice(0, 0)",
    test: "tests/issues/writing.test.ts",
    named: "keeps what it has staged",
  },
  {
    name: "a waiter is granted an issue that may not be claimed any more",
    file: "src/features/issues/claimable.ts",
    from: "    await refuse();\n",
    to: "",
    test: "tests/cli/claims-after-waiting.test.ts",
    named: "is not granted to it when it is 'done'",
  },
  {
    name: "whoever takes left work over leaves the claim behind",
    file: "src/features/claims/commands/abandoned-work.ts",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is source text
    from: "--issue ${shortId} && cd",
    to: "&& cd",
    test: "tests/scenarios/left-work.test.ts",
    named: "where only its branch is left",
  },
  {
    name: "what an evicted agent left is shown as left for ever",
    file: "src/store/store.ts",
    from: "for (const name of left) if (known.has(name)) facts.set(name, null);",
    to: "",
    test: "tests/scenarios/left-work.test.ts",
    named: "leaves work, with who, when and where",
  },
  {
    name: "recover gives out tokens again that commits were made under",
    file: "src/features/doctor/operations.ts",
    from: "    return [...issues.map((issue) => tokenSeen([issue])), ...committed];",
    to: "    return issues.map((issue) => tokenSeen([issue]));",
    test: "tests/cli/restored-store.test.ts",
    named: "recover goes on above",
  },
];
