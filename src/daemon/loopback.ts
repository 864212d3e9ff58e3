import type { HttpDoor } from "../features/harnesses/command-line";
import { httpHost } from "../features/harnesses/entries";
import { GuardHttp } from "./guard-http";
import type { GuardService } from "./guard-service";
import type { HookPlace } from "./hook-place";
import { LOOPBACK, readDoor } from "./http-door";
import type { Journal } from "./journal";

/** Answers harnesses over HTTP where `agent install --via http` has told one to ask so. */
export class Loopback {
  #open: { readonly door: HttpDoor; readonly server: GuardHttp } | null = null;

  constructor(
    private readonly place: HookPlace | null,
    private readonly guard: GuardService,
    private readonly journal: Journal,
  ) {}

  /** Null where nobody listens. */
  get port(): number | null {
    return this.#open?.door.port ?? null;
  }

  /** Without it, harnesses that ask here could write nothing. */
  get isOpen(): boolean {
    return this.#open !== null;
  }

  /** As it was chosen by now. */
  async refresh(): Promise<{ readonly port: number | null }> {
    const door = this.place === null ? null : readDoor(this.place);
    const known = this.#open?.door;
    if (known?.port !== door?.port || known?.token !== door?.token) {
      await this.close();
      if (door !== null) await this.#listen(door);
    }
    return { port: this.port };
  }

  async close(): Promise<void> {
    const open = this.#open;
    this.#open = null;
    await open?.server.close();
  }

  async #listen(door: HttpDoor): Promise<void> {
    const { port, token } = door;
    const server = new GuardHttp({
      token,
      host: httpHost(door),
      type: "application/json",
      handle: (post) => this.guard.handleHttp(post, port),
    });
    try {
      await server.listen({ host: LOOPBACK, port });
      this.#open = { door, server };
    } catch (error) {
      this.journal.note("harnesses are not answered over HTTP", { port, error: (error as Error).message });
    }
  }
}
