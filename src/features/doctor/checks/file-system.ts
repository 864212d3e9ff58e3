import { fileSystemOf, isNetworkAllowed } from "../file-system";
import { type Check, error, ok, warning } from "../finding";

/** Where locks cannot be trusted, neither can leases. */
export const fileSystemCheck: Check = {
  name: "file-system",
  async look({ place, platform, repository, layout, hasStore }) {
    const path = hasStore ? layout.root : repository.commonDir;
    const { network, type } = await fileSystemOf(platform.files, path);
    const data = { path, file_system: network ?? type, network: network !== null };
    if (network === null) return [ok(`local${type === null ? "" : ` (${type})`}`, data)];
    const message = `${path} is on a network or pass-through file system (${network}): its locks cannot be trusted`;
    if (await isNetworkAllowed(platform.files, layout, place.env))
      return [warning(`${message}; somebody has allowed it`, "use a clone on a local disk", data)];
    return [error("E_NETWORK_FS", message, "use a clone on a local disk", data)];
  },
};
