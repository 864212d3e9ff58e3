import type { LogCheck } from "../../testing/checker/log-check";
import type { Verdict } from "../../testing/checker/verdict";
import type { Report } from "./messages";

const COUNTED = [
  "granted",
  "refused",
  "waited",
  "renewed",
  "released",
  "stolen",
  "expired",
  "evicted",
  "transferred",
  "fenced",
  "killed",
  "stopped",
] as const;
export type Counted = (typeof COUNTED)[number];

/** What everybody said they did. Compared with the log in the end. */
export class Books {
  readonly counts: Record<Counted, number> = Object.fromEntries(COUNTED.map((name) => [name, 0])) as Record<
    Counted,
    number
  >;
  readonly #granted = new Map<string, { readonly key: string; readonly token: number }>();
  readonly #released = new Set<string>();
  readonly #taken = new Map<string, { readonly how: string; readonly atMs: number }>();
  /** Processes that died between asking and telling: of each, the log may know one thing more. */
  readonly #unheard = new Set<number>();

  enter(report: Report): void {
    switch (report.say) {
      case "granted":
        if (!report.adopted) this.#grant(report.leases);
        if (!report.adopted) this.counts.granted++;
        if (report.queued) this.counts.waited++;
        for (const { leaseId, how } of report.ended) this.taken(leaseId, how);
        return;
      case "refused":
        this.counts.refused++;
        return;
      case "renewed":
        this.counts.renewed++;
        return;
      case "released":
        this.counts.released++;
        for (const id of report.leaseIds) this.#released.add(id);
        return;
      case "transferred":
        this.counts.transferred++;
        this.#grant([report.lease]);
        this.taken(report.from, "transferred");
        return;
      case "fenced":
        this.counts.fenced++;
        return;
      default:
    }
  }

  taken(leaseId: string, how: string): void {
    this.#taken.set(leaseId, { how, atMs: Date.now() });
    if (how === "dead") this.counts.stolen++;
    if (how === "expired") this.counts.expired++;
    if (how === "forced") this.counts.evicted++;
  }

  /** When somebody said that this lease had ended, if anybody did. */
  takenAtMs(leaseId: string): number | null {
    return this.#taken.get(leaseId)?.atMs ?? null;
  }

  unheard(pid: number): void {
    this.#unheard.add(pid);
  }

  #grant(leases: readonly { leaseId: string; key: string; token: number }[]): void {
    for (const { leaseId, key, token } of leases) this.#granted.set(leaseId, { key, token });
  }

  /** Every word is in the log, and the log has nothing that nobody said, except of those who died at it. */
  compare(log: LogCheck, verdict: Verdict): void {
    for (const [id, { key, token }] of this.#granted) {
      const known = log.byId.get(id);
      verdict.expect(
        "what was acknowledged is in the log",
        known?.key === key && known.token === token,
        () => `${key} #${token} was granted, and the log does not know it`,
      );
    }
    for (const known of log.byId.values()) {
      const what = `${known.key} #${known.token}`;
      verdict.expect(
        "every grant in the log was heard of",
        this.#granted.has(known.leaseId) || this.#unheard.has(known.pid),
        () => `${what} of ${known.agentId} (process ${known.pid})`,
      );
      if (known.how === null) continue;
      const heard =
        known.how === "released" ? this.#released.has(known.leaseId) : this.#taken.has(known.leaseId);
      verdict.expect(
        "every ending in the log was heard of",
        heard || this.#unheard.has(known.endedBy ?? 0),
        () => `${what} ended (${known.how}), and nobody said so`,
      );
      if (heard && known.how !== "released")
        verdict.expect(
          "agents and the log agree on how leases end",
          this.#taken.get(known.leaseId)?.how === known.how,
          () => `${what}: ${this.#taken.get(known.leaseId)?.how} or ${known.how}?`,
        );
    }
    this.#compareCounts(log, verdict);
  }

  /** What nobody heard of can only make the log say more. */
  #compareCounts(log: LogCheck, verdict: Verdict): void {
    const { counts } = this;
    const pairs: [string, number, number][] = [
      ["granted", counts.granted, log.counts.get("claim.acquired") ?? 0],
      ["released", counts.released, log.counts.get("claim.released") ?? 0],
      ["transferred", counts.transferred, log.counts.get("claim.transferred") ?? 0],
    ];
    for (const [name, said, logged] of pairs)
      verdict.expect(
        "agents and the log count alike",
        said <= logged && logged - said <= this.#unheard.size,
        () => `${name}: agents say ${said}, the log ${logged}`,
      );
    const renewed = log.counts.get("claim.renewed") ?? 0;
    verdict.expect(
      "agents and the log count alike",
      counts.renewed <= renewed,
      () => `renewed: agents say ${counts.renewed}, the log ${renewed}`,
    );
  }
}
