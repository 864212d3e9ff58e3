import type { IssueReader } from "../reader";
import type { FoundIssue } from "../resolve";

/** Gates of the issue that have not been passed yet. */
export async function pendingGates(_reader: IssueReader, { issue }: FoundIssue): Promise<string[]> {
  return [...issue.gates];
}
