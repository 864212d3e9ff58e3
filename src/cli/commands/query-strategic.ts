import { queryAll } from "../../issues/query";
import type { Command } from "../command";
import { answerOutput, FILTER_FLAGS, filterFrom, openQuery, STATE_FLAG } from "../querying";

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
    const types =
      filter.types.length === 0 ? strategic : filter.types.filter((type) => strategic.includes(type));
    // No type at all is asked for by a name that no type has.
    const wanted = { ...filter, types: types.length === 0 ? [""] : types };
    const found = await queryAll(setting, wanted, "everywhere");
    return answerOutput(context, setting, found, `no issues of type ${strategic.join(", ")}`);
  },
};
