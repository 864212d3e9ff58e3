/** What decides where configuration files are. */
export interface Places {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Null when there is no home directory. */
  readonly home: string | null;
  /** Null outside a worktree. */
  readonly worktreeRoot: string | null;
  /** `/etc/cotenant` unless a test says otherwise. */
  readonly systemDirectory?: string;
}

/** The files that count, the strongest first, whether they exist or not. */
export function configFiles(question: Places): { source: "worktree" | "user" | "system"; file: string }[] {
  const { worktreeRoot, systemDirectory = "/etc/cotenant" } = question;
  const user = userConfigDirectory(question);
  return [
    ...(worktreeRoot === null
      ? []
      : [{ source: "worktree" as const, file: `${worktreeRoot}/.cotenant/config.toml` }]),
    ...(user === null ? [] : [{ source: "user" as const, file: `${user}/config.toml` }]),
    { source: "system" as const, file: `${systemDirectory}/config.toml` },
  ];
}

/** `~/.config/cotenant`, or where XDG_CONFIG_HOME says; a relative one is to be ignored. */
export function userConfigDirectory({ env, home }: Pick<Places, "env" | "home">): string | null {
  const xdg = env["XDG_CONFIG_HOME"];
  if (xdg?.startsWith("/")) return `${xdg.replace(/(?<=.)\/+$/, "")}/cotenant`;
  return home === null || home === "" ? null : `${home}/.config/cotenant`;
}
