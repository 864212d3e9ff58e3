import type { Command } from "../../../cli/grammar/command";
import type { IssueRow } from "../board";
import { queryAll, typesOf } from "../query";
import { answerOutput, FILTER_FLAGS, filterFrom, openQuery, STATE_FLAG } from "./querying";

export const command: Command = {
  usage: "query strategic [--state <state>]… [--priority <p>]… [--label <ns:value>]…",
  about: "Lists issues of the types in types.strategic: by default milestones and epics.",
  flags: { ...STATE_FLAG, ...FILTER_FLAGS },
  examples: ["cotenant query strategic", "cotenant query strategic --state in_progress"],
  words: { min: 0, max: 0 },
  async run(context, parsed) {
    const filter = filterFrom(parsed);
    const { desk, setting } = await openQuery(context);
    const strategic = desk.workspace?.config.values["types.strategic"] ?? ["milestone", "epic"];
    const isStrategic = ({ labels }: IssueRow) => typesOf(labels).some((type) => strategic.includes(type));
    const found = await queryAll(setting, filter, "everywhere", isStrategic);
    return answerOutput(context, setting, found, `no issues of type ${strategic.join(", ")}`);
  },
};
