import { throughGuardDoor } from "./door";

/** What the whole program is for: everything that no harness says. */
function whole(): Promise<never> {
  require(`${__dirname}/cli.cjs`);
  return new Promise(() => {});
}

throughGuardDoor(process.argv.slice(2))
  .then((status) => status ?? whole())
  .then((status) => process.exit(status));
