import { makeClockId } from "../../kernel/time";
import type { Clock } from "../platform";
import { bootId, namespace } from "./processes";

export class NodeClock implements Clock {
  #clockId: string | undefined;

  wallMs(): number {
    return Date.now();
  }

  monotonicMs(): number {
    const [seconds, nanoseconds] = process.hrtime();
    return seconds * 1000 + Math.floor(nanoseconds / 1e6);
  }

  clockId(): string {
    this.#clockId ??= makeClockId(bootId(), namespace("time"));
    return this.#clockId;
  }
}
