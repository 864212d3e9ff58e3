import { COMMITTED_CONFIG } from "../config/committed";
import type { Config } from "../config/load";
import { pathRulesIn } from "../config/path-rules";
import { CotenantError } from "../errors/cotenant-error";
import { printable } from "../kernel/ids";
import { isPathKey, kindOf, type LeaseKey, nameOf } from "../kernel/keys";
import {
  bindsEverybody,
  type PathRule,
  pathJudge,
  RULES_FILE,
  ruledOut,
  whatInstead,
} from "../kernel/path-rules";
import type { Workspace } from "./workspace";

/**
 * Refuses what the caller could not write anyway, before anybody is kept out by it. A directory of which something may be
 * written may be leased: what is written in it is judged then.
 */
export async function refuseRuled(workspace: Workspace, keys: readonly LeaseKey[]): Promise<void> {
  const rules = pathRulesIn(workspace.config.layers);
  const paths = keys.filter(isPathKey);
  if (rules.length === 0 || paths.length === 0) return;
  const { agentId } = await workspace.agent();
  const judge = pathJudge({ rules, ignoreCase: workspace.repository.config.ignoreCase }, [agentId]);
  for (const key of judge === null ? [] : paths) {
    const path = nameOf(key);
    const rule = kindOf(key) === "dir" ? judge!.anythingIn(path) : judge!.writing(path);
    if (rule !== null)
      throw new CotenantError("E_PATH_RULE", `${printable(path, 300)}: ${ruledOut(rule, path, [agentId])}`, {
        hint: whatInstead(rule),
        data: { path, rule: rule.text, place: rule.place },
      });
  }
}

/** What whoever has changed the repository's rules should know; `config` is what holds since. */
export async function remarksOnRules(
  workspace: Workspace,
  { layers }: Pick<Config, "layers">,
): Promise<string[]> {
  const rules = pathRulesIn(layers);
  const { agentId } = await workspace.agent();
  const keeper = pathJudge({ rules, ignoreCase: workspace.repository.config.ignoreCase }, [agentId])?.writing(
    RULES_FILE,
  );
  const binding =
    keeper == null ? [] : [`${quoted(keeper)} binds you: only ${whoCan(keeper)} can commit or change it`];
  const lifted = rules.filter(({ place }) => place.startsWith(COMMITTED_CONFIG));
  return [
    ...binding,
    ...lifted.map((rule) => `${quoted(rule)} (${rule.place}) binds until the change is committed`),
  ];
}

function quoted({ text }: PathRule): string {
  return `"${printable(text, 200)}"`;
}

/** People may always change the file with the committed rules. */
function whoCan(rule: PathRule): string {
  return bindsEverybody(rule) ? "a person" : "somebody whom it does not bind";
}
