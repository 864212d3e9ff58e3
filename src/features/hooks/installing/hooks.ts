/** Hooks of a clone, in the order in which Git runs them. */
export const CLIENT_HOOKS = ["pre-commit", "prepare-commit-msg", "post-commit", "pre-push"] as const;
/** Hooks of a repository that others push to. */
export const SERVER_HOOKS = ["pre-receive"] as const;

export type InstalledHook = (typeof CLIENT_HOOKS)[number] | (typeof SERVER_HOOKS)[number];

export const ALL_HOOKS: readonly InstalledHook[] = [...CLIENT_HOOKS, ...SERVER_HOOKS];

/** What each looks at, for people. */
export const MEANINGS: Readonly<Record<InstalledHook, string>> = {
  "pre-commit": "refuses what somebody else holds",
  "prepare-commit-msg": "says in the message which claims it rests on",
  "post-commit": "puts on record what went around the hooks",
  "pre-push": "looks at every commit again before it leaves",
  "pre-receive": "checks what others push here",
};
