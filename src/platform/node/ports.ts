/** Whether nobody listens on any of these ports of this machine. */
export async function arePortsFree(from: number, count: number): Promise<boolean> {
  for (let port = from; port < from + count; port++) if (!(await isPortFree(port))) return false;
  return true;
}

function isPortFree(port: number): Promise<boolean> {
  const { createServer } = require("node:net") as typeof import("node:net");
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    // On every address: a server on one of them is in the way of one on all.
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
