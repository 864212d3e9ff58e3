import { configTemplate } from "../../config/template";
import { dataPlaneFile } from "../../identity/data-plane";

export const ENFORCE_MODES = ["off", "warn", "strict"];

/** The config.toml that `init` writes. */
export function initialConfig(enforce: string | undefined): string {
  const text = configTemplate();
  return enforce === undefined
    ? text
    : text.replace(/^# ?enforce_leases = .*$/m, `enforce_leases = "${enforce}"`);
}

/** Whether a file of the data plane is as `init` made it: then nobody has put anything into it. */
export function isAsInitMadeIt(name: string, text: string): boolean {
  if (name === "config.toml")
    return [undefined, ...ENFORCE_MODES].some((mode) => text === initialConfig(mode));
  return (name === ".gitignore" || name === ".gitattributes") && text === dataPlaneFile(name);
}
