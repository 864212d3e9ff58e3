/** A command that writes, and what has to be there before it. `%` is another number in every trial. */
export interface Writing {
  readonly name: string;
  readonly line: string;
  readonly before: readonly string[];
  /** Done again after it was done, it is refused for that. */
  readonly againCodes?: readonly string[];
}

export const WRITING: readonly Writing[] = [
  { name: "lock acquire", line: "lock acquire f%", before: [] },
  { name: "lock acquire many", line: "lock acquire a% b% c% d% e% --dir l% --resource r%", before: [] },
  { name: "lock renew", line: "lock renew f% --ttl 900", before: ["lock acquire f%"] },
  { name: "lock release", line: "lock release f%", before: ["lock acquire f%"], againCodes: ["E_NOT_FOUND"] },
  { name: "lock steal", line: "lock steal f% --reason r --agent-id human:h", before: ["lock acquire f%"] },
  { name: "lock wait", line: "lock acquire w% --wait --timeout 1", before: [] },
  { name: "lock gc", line: "lock gc", before: ["lock acquire g% --ttl 1", "SLEEP"] },
  { name: "claim acquire", line: "claim acquire ISSUE", before: ["FREE ISSUE"] },
  { name: "claim renew", line: "claim renew ISSUE --ttl 900", before: ["FREE ISSUE", "claim acquire ISSUE"] },
  { name: "claim heartbeat", line: "claim heartbeat ISSUE", before: ["FREE ISSUE", "claim acquire ISSUE"] },
  {
    name: "claim release",
    line: "claim release ISSUE",
    before: ["FREE ISSUE", "claim acquire ISSUE"],
    againCodes: ["E_NOT_FOUND", "E_FENCING_MISMATCH"],
  },
  {
    name: "claim transfer",
    line: "claim transfer ISSUE --to-agent agent:b --reason r",
    before: ["FREE ISSUE", "claim acquire ISSUE"],
    againCodes: ["E_FENCING_MISMATCH", "E_LOCK_NOT_HELD"],
  },
  {
    name: "claim force-evict",
    line: "claim force-evict ISSUE --reason r --agent-id human:h",
    before: ["FREE ISSUE", "claim acquire ISSUE"],
    againCodes: ["E_NOT_FOUND"],
  },
  { name: "issue create", line: "issue create --title t%", before: [] },
  { name: "gc --compact", line: "gc --compact", before: ["lock acquire f%"] },
  { name: "init", line: "init", before: ["FORGET-INIT"] },
  { name: "worktree init", line: "worktree init", before: ["FORGET-INIT"] },
];

export const READING = ["status", "lock status", "claim list", "issue list", "worktree info"];
