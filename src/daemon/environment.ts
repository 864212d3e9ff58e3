import { harnessVariables } from "../identity/harness";
import type { Environment } from "../identity/repository";

/**
 * What a daemon takes over from whoever started it: where things are, and how Git reaches a remote. Not who they are, what
 * they alone have configured, and which repository Git was told of for one command: it serves everybody who comes.
 */
export function daemonEnvironment(env: Environment): Environment {
  const dropped = new Set(harnessVariables());
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name]) => !dropped.has(name) && !/^COTENANT_/.test(name) && !OF_ONE_COMMAND.test(name),
    ),
  );
}

const OF_ONE_COMMAND =
  /^GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|PREFIX|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|QUARANTINE_PATH|REFLOG_ACTION|EDITOR|SEQUENCE_EDITOR|AUTHOR_.*|COMMITTER_.*)$/;
