import * as path from "node:path";

export type Supervisor = "systemd" | "launchd";

export interface Unit {
  /** Without its ending. */
  readonly name: string;
  /** Where it belongs, below the home directory. */
  readonly file: string;
  readonly text: string;
  /** What a person runs once it is there. */
  readonly commands: readonly string[];
}

export interface UnitQuestion {
  readonly node: string;
  readonly program: string;
  /** The main worktree, which the daemon is started in. */
  readonly root: string;
  /** Tells this repository from others of the same name. */
  readonly mark: string;
}

/** What makes a supervisor of the user's own keep the daemon of one repository running. */
export function unitFor(supervisor: Supervisor, question: UnitQuestion): Unit {
  return supervisor === "systemd" ? systemdUnit(question) : launchdUnit(question);
}

/** Everything that a person runs to have it: the folder, the file, and what makes the supervisor read it. */
export function stepsFor(supervisor: Supervisor, { file, commands }: Unit): string[] {
  return [
    `mkdir -p ~/${path.posix.dirname(file)}`,
    `cotenant daemon install --print ${supervisor} --quiet > ~/${file}`,
    ...commands,
  ];
}

function nameFor({ root, mark }: UnitQuestion): string {
  const base =
    path
      .basename(root)
      .replace(/[^A-Za-z0-9_-]+/g, "-")
      .slice(0, 40) || "repository";
  return `cotenant-${base}-${mark.slice(0, 8)}`;
}

function systemdUnit(question: UnitQuestion): Unit {
  const { node, program, root } = question;
  const name = nameFor(question);
  const words = [node, program, "daemon", "run"].map(systemdWord).join(" ");
  return {
    name,
    file: `.config/systemd/user/${name}.service`,
    text: `[Unit]
Description=cotenant daemon for ${systemdText(root)}

[Service]
ExecStart=${words}
WorkingDirectory=${systemdText(root)}
Restart=on-failure
RestartPreventExitStatus=10
RestartSec=5

[Install]
WantedBy=default.target
`,
    commands: [`systemctl --user daemon-reload`, `systemctl --user enable --now ${name}.service`],
  };
}

/** As systemd.syntax(7) and systemd.unit(5) have it: specifiers and variables are doubled, the rest is quoted. */
function systemdWord(text: string): string {
  return `"${systemdText(text).replace(/\\/g, "\\\\").replace(/"/g, '\\"').replace(/\$/g, "$$$$")}"`;
}

function systemdText(text: string): string {
  return text.replace(/%/g, "%%");
}

function launchdUnit(question: UnitQuestion): Unit {
  const { node, program, root } = question;
  const name = nameFor(question);
  const words = [node, program, "daemon", "run"]
    .map((word) => `    <string>${xml(word)}</string>`)
    .join("\n");
  const file = `Library/LaunchAgents/${name}.plist`;
  return {
    name,
    file,
    text: `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>${xml(name)}</string>
  <key>ProgramArguments</key>
  <array>
${words}
  </array>
  <key>WorkingDirectory</key>
  <string>${xml(root)}</string>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
</dict>
</plist>
`,
    commands: [`launchctl bootstrap gui/$(id -u) ~/${file}`],
  };
}

function xml(text: string): string {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}
