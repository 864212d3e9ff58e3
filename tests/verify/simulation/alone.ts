/** The simulation in a process of its own: `node alone.cjs '{"least": 100, "seed": 1}'`. Prints the result as JSON. */
import { type Effort, prove } from "../layer";
import { simulation } from "./layer";

prove(simulation, JSON.parse(process.argv[2]!) as Effort).then((result) => {
  process.stdout.write(`${JSON.stringify(result)}\n`);
});
