/** For a command that is run in this process: no terminal at all, and what is written to it is kept. */
export function listeningTerminal() {
  const heard = { stdout: "", stderr: "" };
  const terminal = {
    isTerminal: false,
    color: false,
    columns: 100,
    out: (text: string) => {
      heard.stdout += text;
      return true;
    },
    err: (text: string) => {
      heard.stderr += text;
    },
  };
  return { terminal, heard };
}
