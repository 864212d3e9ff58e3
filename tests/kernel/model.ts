import type { Acquire, Actor, Command, Evict, LeaseRef, Transfer } from "../../src/kernel/commands";
import type { Circumstances } from "../../src/kernel/decide";
import type { Holder } from "../../src/kernel/lease";
import type { Ticket } from "../../src/kernel/tickets";
import type { Instant } from "../../src/kernel/time";

/**
 * The lease rules (docs/ARCHITECTURE.md, PROTOCOL 10-16) once more, as plainly as possible: a list of facts that is
 * walked from end to end for every question. Shares types with the kernel and not one function.
 */
export interface Fact {
  id: string;
  key: string;
  agent: string;
  session: string;
  worktree: string;
  branch: string | null;
  reach: string;
  bind: string;
  token: number;
  secret: string | null;
  holder: Holder;
  ttl: number;
  maxTotal: number | null;
  acquired: Instant;
  renewed: Instant;
  beat: Instant;
  expires: Instant | null;
  stopped: Instant | null;
  reason: string | null;
  from: { id: string; agent: string; why: string }[];
}

export interface Gone {
  id: string;
  key: string;
  how: string;
  successor: string | null;
}

export type Answer = { code: string } | { about: Fact[]; wrote: boolean };

type Place = { key: string; reach: string; worktree: string };

export class Model {
  facts: Fact[] = [];
  gone: Gone[] = [];
  nextToken = 1;

  perform(command: Command, at: Circumstances): Answer {
    switch (command.kind) {
      case "acquire":
        return this.#acquire(command, at);
      case "transfer":
        return this.#transfer(command, at);
      case "evict":
        return this.#evict(command, at);
      case "gc":
        return this.#gc(at);
      case "renew": {
        if (command.overrideMax && blank(command.reason)) return { code: "E_USAGE" };
        return this.#asHolder(command, at, true, (fact) => {
          const ttl = command.ttlSecs ?? fact.ttl;
          const bad = badTtl(ttl, fact.agent, at);
          if (bad !== null) return bad;
          const longest = fact.maxTotal === null ? Infinity : left(plus(fact.acquired, fact.maxTotal), at);
          if (fact.expires !== null) {
            if (ttl === 0) return "E_USAGE";
            if (ttl * 1000 > longest && !command.overrideMax) return "E_LIMIT";
            const until = Math.max(ttl * 1000, leftOf(fact, at));
            fact.expires = { ...stamp(at), ...moved(at, until) };
            fact.ttl = ttl;
          }
          if (fact.bind === "ttl") fact.holder = command.actor.holder;
          fact.renewed = stamp(at);
          fact.beat = stamp(at);
          fact.stopped = null;
          return null;
        });
      }
      case "heartbeat":
        return this.#asHolder(command, at, true, (fact) => {
          if (forgotten(fact, at)) return "E_LOCK_EXPIRED";
          fact.beat = stamp(at);
          return null;
        });
      case "prove": {
        const handed = new Set(this.facts.filter((fact) => fact.secret === null).map(({ id }) => id));
        const answer = this.#asHolder(command, at, true, (fact) =>
          forgotten(fact, at) ? "E_LOCK_EXPIRED" : null,
        );
        return "code" in answer
          ? answer
          : { ...answer, wrote: answer.about.some(({ id }) => handed.has(id)) };
      }
      case "release": {
        const answer = this.#asHolder(command, at, false, () => null);
        if ("about" in answer) this.#remove(answer.about);
        return answer;
      }
      case "stop": {
        const about: Fact[] = [];
        for (const fact of this.#mineAmong(command, at)) {
          if (!command.proofs.includes(fact.secret!) || fact.stopped !== null) continue;
          fact.stopped = stamp(at);
          about.push(fact);
        }
        return { about, wrote: about.length > 0 };
      }
      case "upkeep": {
        const about: Fact[] = [];
        for (const fact of this.#mineAmong(command, at)) {
          const proved = command.proofs.includes(fact.secret!);
          if (!proved && command.secretHash === undefined) continue;
          let changed = false;
          if (!proved) changed = this.#adopt(fact, command.actor, command.secretHash!, at);
          if (this.#lookAfter(fact, command.actor, at)) changed = true;
          if (changed) about.push(fact);
        }
        return { about, wrote: about.length > 0 };
      }
    }
  }

  // --- taking -------------------------------------------------------------------------------------------

  #acquire(c: Acquire, at: Circumstances): Answer {
    if (c.keys.length === 0) return { code: "E_USAGE" };
    if (c.bind === "ttl") {
      const bad = badTtl(c.ttlSecs, c.actor.agentId, at);
      if (bad !== null) return { code: bad };
    }
    const have: Fact[] = [];
    const need: (Place & { id: string })[] = [];
    c.keys.forEach((asked, i) => {
      const isPath = asked.key.startsWith("file:") || asked.key.startsWith("dir:");
      const place = {
        key: asked.key as string,
        reach: isPath ? (asked.reach as string) : "repository",
        worktree: c.actor.worktreeId as string,
      };
      if (need.some((n) => sameSlot(n, place)) || have.some((f) => sameSlot(f, place))) return;
      const mine = this.facts.find(
        (f) => sameSlot(f, place) && (isParty(f, c.actor) || isHandedTo(f, c.actor)) && why(f, at) === null,
      );
      if (mine !== undefined) have.push(mine);
      else need.push({ ...place, id: c.leaseIds[i]! });
    });
    const ours = this.facts.filter((f) => isParty(f, c.actor) || isHandedTo(f, c.actor));
    const isNew = (n: Place) =>
      !ours.some(
        (f) =>
          why(f, at) === null &&
          (f.key === n.key || contains(f.key, n.key)) &&
          (f.reach === "repository" || n.reach === "worktree"),
      );
    if ([...(at.facts?.keys() ?? [])].some((name) => name === "pause:repository") && need.some(isNew))
      return { code: "E_PAUSED" };
    const others = this.facts.filter((f) => !isParty(f, c.actor) && !isHandedTo(f, c.actor));
    const enemies = others.filter((f) => why(f, at) === null && need.some((n) => clash(n, f)));

    if (c.ttlSecs === 0 && c.bind === "ttl" && need.length > 0) {
      const remaining = c.steal ? this.facts.filter((f) => !enemies.includes(f)) : this.facts;
      const bad = this.#badForever(
        need.map((n) => n.key),
        c.actor.agentId,
        c.reason,
        remaining,
        at,
      );
      if (bad !== null) return { code: bad };
    }
    if (enemies.length > 0) {
      if (!c.steal) return { code: "E_LOCK_CONFLICT" };
      if (blank(c.reason)) return { code: "E_USAGE" };
      if (!allowed(c.actor.agentId, at)) return { code: "E_POLICY" };
      if (enemies.some((f) => untouchable(f, at))) return { code: "E_LOCK_CONFLICT" };
      if (at.policy.approvers > 0 && enemies.some((f) => f.agent !== c.actor.agentId))
        return { code: "E_APPROVAL_NEEDED" };
    }
    const overQueue = c.steal && !blank(c.reason) && allowed(c.actor.agentId, at);
    if (!overQueue && need.some((n) => at.tickets.some((t) => this.#mustLetGo(t, n, c, at))))
      return { code: "E_QUEUED" };

    if (need.length > 0) this.nextToken = Math.max(this.nextToken, (c.aboveToken ?? 0) + 1);
    const taken: Fact[] = need.map((n) => {
      const finite = c.bind === "ttl" && c.ttlSecs > 0;
      return {
        id: n.id,
        key: n.key,
        agent: c.actor.agentId,
        session: c.actor.sessionId,
        worktree: c.actor.worktreeId,
        branch: c.actor.branch,
        reach: n.reach,
        bind: c.bind,
        token: this.nextToken++,
        secret: c.secretHash,
        holder: c.actor.holder,
        ttl: c.bind === "process" ? 0 : c.ttlSecs,
        maxTotal: finite ? Math.max(c.ttlSecs, at.policy.maxTotalSecs) : null,
        acquired: stamp(at),
        renewed: stamp(at),
        beat: stamp(at),
        expires: finite ? plus(stamp(at), c.ttlSecs) : null,
        stopped: null,
        reason: c.reason,
        from: [],
      };
    });
    const around = this.facts.filter((f) => need.some((n) => clash(n, f)));
    const handed = around.filter((f) => why(f, at) === null && isHandedTo(f, c.actor) && !have.includes(f));
    for (const f of around) {
      const cause = enemies.includes(f) ? "forced" : why(f, at);
      if (cause === null) continue;
      for (const t of taken) if (clash(t, f)) t.from.push({ id: f.id, agent: f.agent, why: cause });
      this.#end(f, cause, taken.find((t) => clash(t, f))!.id);
    }
    for (const t of taken) {
      const order = (x: { id: string; why: string }) =>
        (x.why === "forced" ? 0 : 1e9) + around.find((f) => f.id === x.id)!.token;
      t.from.sort((a, b) => order(a) - order(b));
    }
    let wrote = taken.length > 0;
    for (const fact of [...have, ...handed]) {
      if (fact.secret === null || !c.proofs.includes(fact.secret)) {
        wrote = true;
        if (fact.bind === "ttl") this.#adopt(fact, c.actor, c.secretHash, at);
        else {
          fact.secret = c.secretHash;
          fact.beat = stamp(at);
        }
      }
      if (fact.bind === "process" && c.bind === "process" && !sameOne(fact.holder, c.actor.holder)) {
        fact.holder = c.actor.holder;
        fact.beat = stamp(at);
        wrote = true;
      }
      if (fact.bind === "ttl" && c.follows === true && !sameOne(fact.holder, c.actor.holder)) {
        if (fact.expires !== null && fact.expires.clockId !== at.now.clockId)
          fact.expires = { ...stamp(at), ...moved(at, leftOf(fact, at)) };
        fact.holder = c.actor.holder;
        wrote = true;
      }
      if (this.#lookAfter(fact, c.actor, at)) wrote = true;
      if (c.bind === "ttl" && this.#extend(fact, c, at)) wrote = true;
    }
    this.facts.push(...taken);
    const mine = [...have, ...taken];
    const about = c.keys
      .map(({ key, reach }) => mine.find((f) => f.key === key && (f.reach === reach || !isPathText(key)))!)
      .filter((fact, i, all) => all.indexOf(fact) === i);
    handed.sort((a, b) => a.token - b.token);
    return { about: [...about, ...handed.filter((f) => !about.includes(f))], wrote };
  }

  #mustLetGo(ticket: Ticket, need: Place, c: Acquire, at: Circumstances): boolean {
    const { actor } = c;
    const isOwn = (t: Ticket) =>
      t.agentId === actor.agentId && t.sessionId === actor.sessionId && t.worktreeId === actor.worktreeId;
    if (isOwn(ticket)) return false;
    const place = at.tickets.find((t) => t.number === c.ticket && isOwn(t));
    if (place !== undefined && ticket.number > place.number) return false;
    const wants = ticket.keys.map(({ key, reach }) => ({
      key: key as string,
      reach: isPathText(key) ? (reach as string) : "repository",
      worktree: ticket.worktreeId as string,
    }));
    if (!wants.some((w) => clash(w, need))) return false;
    const waitsForAsker = this.facts.some(
      (f) =>
        f.agent === actor.agentId &&
        f.session === actor.sessionId &&
        why(f, at) === null &&
        !(isParty(f, ticket) || isHandedTo(f, ticket)) &&
        wants.some((w) => clash(w, f)),
    );
    return !waitsForAsker;
  }

  #badForever(
    keys: string[],
    agent: string,
    reason: string | null,
    facts: Fact[],
    at: Circumstances,
  ): string | null {
    if (blank(reason)) return "E_POLICY";
    const kinds = at.policy.indefinite as readonly string[];
    if (!keys.every((key) => kinds.includes(key.split(":")[0]!))) return "E_POLICY";
    const forever = facts.filter((f) => f.bind === "ttl" && f.expires === null && why(f, at) === null);
    const own = forever.filter((f) => f.agent === agent);
    if (own.length + keys.length > at.policy.maxIndefinitePerAgent) return "E_LIMIT";
    return forever.length + keys.length > at.policy.maxIndefinitePerRepo ? "E_LIMIT" : null;
  }

  // --- holding ------------------------------------------------------------------------------------------

  /** All or nothing: works on copies, and only then makes them the facts. */
  #asHolder(
    c: { actor: Actor; leases: readonly LeaseRef[]; proofs: readonly string[]; secretHash: string },
    at: Circumstances,
    mustBeValid: boolean,
    change: (fact: Fact) => string | null,
  ): Answer {
    const about: Fact[] = [];
    for (const ref of c.leases) {
      const found = this.#meant(ref, c, at);
      if (found === undefined) return { code: this.#epitaph(ref) };
      const fact = { ...found };
      if (!c.proofs.includes(fact.secret!)) {
        if (!isHandedTo(fact, c.actor)) return { code: "E_LOCK_NOT_HELD" };
        this.#adopt(fact, c.actor, c.secretHash, at);
      }
      if (mustBeValid && why(fact, at) !== null)
        return { code: why(fact, at) === "dead" ? "E_FENCING_MISMATCH" : "E_LOCK_EXPIRED" };
      const bad = change(fact);
      if (bad !== null) return { code: bad };
      const twice = about.findIndex((f) => f.id === fact.id);
      if (twice === -1) about.push(fact);
      else about[twice] = fact;
    }
    for (const fact of about) this.facts[this.facts.findIndex((f) => f.id === fact.id)] = fact;
    return { about, wrote: about.length > 0 };
  }

  #mineAmong(
    c: { actor: Actor; leases: readonly LeaseRef[]; proofs: readonly string[] },
    at: Circumstances,
  ): Fact[] {
    const found = c.leases
      .map((ref) => this.#meant(ref, c, at))
      .filter((f) => f !== undefined)
      .filter((f) => why(f, at) === null && (c.proofs.includes(f.secret!) || isHandedTo(f, c.actor)));
    return found.filter((fact, i) => found.indexOf(fact) === i);
  }

  #meant(ref: LeaseRef, c: { actor: Actor; proofs: readonly string[] }, at: Circumstances): Fact | undefined {
    const named = this.facts.filter(
      (f) =>
        (ref.leaseId === null || f.id === ref.leaseId) &&
        (ref.key === null || f.key === ref.key) &&
        (ref.key !== null || ref.leaseId !== null),
    );
    const steps: ((f: Fact) => boolean)[] = [
      (f) => c.proofs.includes(f.secret!),
      (f) => isParty(f, c.actor) || isHandedTo(f, c.actor),
      (f) => f.worktree === c.actor.worktreeId,
      () => true,
    ];
    for (const step of steps) {
      const near = named.filter(step);
      if (near.length > 0) return first(near, at);
    }
    return undefined;
  }

  #epitaph(ref: LeaseRef): string {
    const gone = this.gone.find((g) => g.id === ref.leaseId && (ref.key === null || ref.key === g.key));
    if (gone === undefined) return "E_NOT_FOUND";
    const ranOut = gone.how === "expired" || gone.how === "stop_idle";
    return ranOut && gone.successor === null ? "E_LOCK_EXPIRED" : "E_FENCING_MISMATCH";
  }

  #adopt(fact: Fact, actor: Actor, secret: string, at: Circumstances): true {
    if (fact.expires !== null && fact.expires.clockId !== at.now.clockId)
      fact.expires = { ...stamp(at), ...moved(at, leftOf(fact, at)) };
    fact.session = actor.sessionId;
    fact.branch = actor.branch;
    fact.holder = actor.holder;
    fact.secret = secret;
    if (!forgotten(fact, at)) fact.beat = stamp(at);
    return true;
  }

  #extend(fact: Fact, c: Acquire, at: Circumstances): boolean {
    if (fact.expires === null || c.ttlSecs <= fact.ttl) return false;
    const could = Math.min(c.ttlSecs * 1000, left(plus(fact.acquired, fact.maxTotal ?? 30 * 86_400), at));
    if (could <= leftOf(fact, at)) return false;
    fact.expires = { ...stamp(at), ...moved(at, could) };
    fact.ttl = c.ttlSecs;
    fact.renewed = stamp(at);
    fact.beat = stamp(at);
    if (fact.bind === "ttl" && fact.holder.machineId !== c.actor.holder.machineId)
      fact.holder = c.actor.holder;
    return true;
  }

  #lookAfter(fact: Fact, actor: Actor, at: Circumstances): boolean {
    let changed = false;
    if (fact.stopped !== null) {
      fact.stopped = null;
      if (!forgotten(fact, at)) fact.beat = stamp(at);
      changed = true;
    }
    if (forgotten(fact, at)) return changed;
    if (fact.expires === null) {
      const every = Math.min(60, at.policy.unknownTtlSecs / 2, at.policy.staleThresholdSecs / 2);
      if (fact.beat.clockId !== at.now.clockId || since(fact.beat, at) >= every * 1000) {
        fact.beat = stamp(at);
        changed = true;
      }
      return changed;
    }
    const end = plus(fact.acquired, fact.maxTotal ?? 30 * 86_400);
    const could = Math.min(fact.ttl * 1000, left(end, at));
    if (leftOf(fact, at) <= (fact.ttl * 1000) / 2 && could > leftOf(fact, at)) {
      fact.expires = { ...stamp(at), ...moved(at, could) };
      fact.renewed = stamp(at);
      fact.beat = stamp(at);
      if (fact.bind === "ttl" && fact.holder.machineId !== actor.holder.machineId) fact.holder = actor.holder;
      changed = true;
    }
    return changed;
  }

  // --- passing on and ending ------------------------------------------------------------------------------

  #transfer(c: Transfer, at: Circumstances): Answer {
    if (blank(c.reason)) return { code: "E_USAGE" };
    const before = this.facts.map((f) => ({ ...f }));
    const asked = this.#asHolder({ ...c, leases: [c.lease] }, at, true, () => null);
    const taken = "code" in asked ? this.#takenFromOthers(asked.code, c, at) : asked.about[0]!;
    if (typeof taken === "string") return { code: taken };
    const old = taken;
    // Adoption on the way is swallowed by the transfer itself; undone if it is refused.
    const refuse = (code: string) => {
      this.facts = before;
      return { code };
    };
    const target = { key: old.key, reach: old.reach, worktree: c.toWorktree as string };
    const clashing = this.facts.filter((f) => f.id !== old.id && clash(f, target));
    if (clashing.some((f) => why(f, at) === null)) return refuse("E_LOCK_CONFLICT");
    const forever = old.bind === "ttl" && old.expires === null;
    if (forever) {
      const rest = this.facts.filter((f) => f.id !== old.id);
      const bad = this.#badForever([old.key], c.toAgent, c.reason, rest, at);
      if (bad !== null) return refuse(bad);
    }
    const ttl = Math.min(old.bind === "process" ? at.policy.defaultTtlSecs : old.ttl, cap(c.toAgent, at));
    this.nextToken = Math.max(this.nextToken, (c.aboveToken ?? 0) + 1);
    const fact: Fact = {
      ...old,
      id: c.newLeaseId,
      agent: c.toAgent,
      worktree: c.toWorktree,
      branch: c.toBranch,
      bind: "ttl",
      token: this.nextToken++,
      secret: null,
      ttl,
      maxTotal: forever ? null : Math.max(ttl, at.policy.maxTotalSecs),
      acquired: stamp(at),
      renewed: stamp(at),
      beat: stamp(at),
      expires: forever ? null : plus(stamp(at), ttl),
      stopped: null,
      reason: c.reason,
      from: clashing
        .sort((a, b) => a.token - b.token)
        .map((f) => ({ id: f.id, agent: f.agent, why: why(f, at)! })),
    };
    for (const f of clashing) this.#end(f, why(f, at)!, fact.id);
    this.#end(old, "transferred", fact.id);
    this.facts.push(fact);
    return { about: [fact], wrote: true };
  }

  #takenFromOthers(code: string, { actor, lease: ref }: Transfer, at: Circumstances): Fact | string {
    if (code !== "E_LOCK_NOT_HELD" || !allowed(actor.agentId, at)) return code;
    const meant = this.#othersMean(ref, actor, at);
    if (typeof meant === "string") return meant;
    if (why(meant, at) === null && untouchable(meant, at)) return "E_LOCK_CONFLICT";
    if (isParty(meant, actor) || why(meant, at) !== null) return code;
    return at.policy.approvers > 0 && meant.agent !== actor.agentId ? "E_APPROVAL_NEEDED" : meant;
  }

  #othersMean(ref: LeaseRef, actor: Actor, at: Circumstances): Fact | string {
    const named = this.facts.filter(
      (f) =>
        (ref.leaseId === null || f.id === ref.leaseId) &&
        (ref.key === null || f.key === ref.key) &&
        (ref.key !== null || ref.leaseId !== null),
    );
    if (named.length === 0) return this.#epitaph(ref);
    const theirs = named.filter((f) => !isParty(f, actor));
    const near = theirs.filter((f) => f.reach === "repository" || f.worktree === actor.worktreeId);
    if (near.length === 0 && theirs.length > 1) return "E_USAGE";
    return first(near.length > 0 ? near : theirs.length > 0 ? theirs : named, at);
  }

  #evict({ actor, leases: refs, reason, isOverruled }: Evict, at: Circumstances): Answer {
    if (blank(reason)) return { code: "E_USAGE" };
    const about: Fact[] = [];
    for (const ref of refs) {
      const meant = this.#othersMean(ref, actor, at);
      if (typeof meant === "string") return { code: meant };
      if (why(meant, at) === null && isOverruled !== true) {
        if (untouchable(meant, at)) return { code: "E_LOCK_CONFLICT" };
        if (!allowed(actor.agentId, at)) return { code: "E_POLICY" };
      }
      if (!about.includes(meant)) about.push(meant);
    }
    const isOthers = (f: Fact) => why(f, at) === null && f.agent !== actor.agentId;
    if (at.policy.approvers > 0 && isOverruled !== true && about.some(isOthers))
      return { code: "E_APPROVAL_NEEDED" };
    for (const f of about) this.#end(f, why(f, at) ?? "forced", null);
    return { about, wrote: about.length > 0 };
  }

  #gc(at: Circumstances): Answer {
    const about = this.facts.filter((f) => why(f, at) !== null);
    for (const f of about) this.#end(f, why(f, at)!, null);
    return { about, wrote: about.length > 0 };
  }

  #end(fact: Fact, how: string, successor: string | null): void {
    this.#remove([fact]);
    this.gone.push({ id: fact.id, key: fact.key, how, successor });
  }

  #remove(facts: readonly Fact[]): void {
    this.facts = this.facts.filter((f) => !facts.some((g) => g.id === f.id));
  }
}

// --- questions ----------------------------------------------------------------------------------------------

/** Why a lease is not valid; null when it is. */
export function why(f: Fact, at: Circumstances): "expired" | "stop_idle" | "dead" | null {
  if (f.expires !== null && leftOf(f, at) <= 0) return "expired";
  if (f.stopped !== null) {
    const idle = since(f.stopped, at);
    const counted = rebooted(f.stopped, f, at) ? Math.max(idle, at.now.monotonicMs) : idle;
    if (counted >= at.policy.stopIdleSecs * 1000) return "stop_idle";
  }
  if (f.bind === "process") {
    const seen = at.liveness.get(f.id as never) ?? "unknown";
    if (seen === "dead") return "dead";
    if (seen === "unknown" && since(f.beat, at) >= at.policy.unknownTtlSecs * 1000) return "expired";
  }
  return null;
}

export function clash(a: Place, b: Place): boolean {
  const local = a.reach === "worktree" && b.reach === "worktree" && a.worktree !== b.worktree;
  // Only paths are different things in different worktrees.
  if (local && isPathText(a.key)) return false;
  if (a.key === b.key) return true;
  return contains(a.key, b.key) || contains(b.key, a.key);
}

export function isVoidTicket(ticket: Ticket, at: Circumstances, alive: string): boolean {
  const free = ticket.freeSince;
  return (
    alive === "dead" ||
    left(ticket.expiresAt, at) <= 0 ||
    (free !== null &&
      left({ ...free, wallMs: free.wallMs + 5000, monotonicMs: free.monotonicMs + 5000 }, at) <= 0)
  );
}

export function isParty(
  f: Pick<Fact, "agent" | "session" | "worktree">,
  actor: { agentId: string; sessionId: string; worktreeId: string },
): boolean {
  return f.agent === actor.agentId && f.session === actor.sessionId && f.worktree === actor.worktreeId;
}

function isHandedTo(f: Fact, actor: { agentId: string; worktreeId: string }): boolean {
  return f.secret === null && f.agent === actor.agentId && f.worktree === actor.worktreeId;
}

function isPathText(key: string): boolean {
  return key.startsWith("file:") || key.startsWith("dir:");
}

function sameSlot(a: Place, b: Place): boolean {
  return a.key === b.key && a.reach === b.reach && (a.reach === "repository" || a.worktree === b.worktree);
}

function contains(outer: string, inner: string): boolean {
  if (!outer.startsWith("dir:") || !isPathText(inner)) return false;
  const above = steps(outer);
  const below = steps(inner);
  return below.length > above.length && above.every((name, i) => below[i] === name);
}

function steps(key: string): string[] {
  const path = key.slice(key.indexOf(":") + 1);
  return path === "." ? [] : path.split("/");
}

function first(facts: readonly Fact[], at: Circumstances): Fact {
  const valid = facts.filter((f) => why(f, at) === null);
  const wide = (valid.length > 0 ? valid : facts).filter((f) => f.reach === "repository");
  const rest = wide.length > 0 ? wide : valid.length > 0 ? valid : facts;
  return rest.reduce((a, b) => (b.token > a.token ? b : a));
}

function blank(text: string | null): boolean {
  return text === null || /^\s*$/.test(text);
}

function allowed(agent: string, at: Circumstances): boolean {
  return at.policy.evict.some(
    (p) => p === agent || (p.endsWith("*") && agent.startsWith(p.replace("*", ""))),
  );
}

function cap(agent: string, at: Circumstances): number {
  const most = at.policy.maxTtlSecs[agent.split(":")[0]!];
  return most === undefined ? 2_592_000 : Math.min(most, 2_592_000);
}

function badTtl(ttl: number, agent: string, at: Circumstances): string | null {
  if (ttl < 0 || ttl % 1 !== 0) return "E_USAGE";
  return ttl > cap(agent, at) ? "E_LIMIT" : null;
}

function sameOne(a: Holder, b: Holder): boolean {
  return (
    a.machineId === b.machineId &&
    a.bootId === b.bootId &&
    a.pid === b.pid &&
    a.pidNamespace === b.pidNamespace
  );
}

// --- clocks -------------------------------------------------------------------------------------------------

function stamp(at: Circumstances): Instant {
  const { wallMs, clockId, monotonicMs } = at.now;
  return { wallMs, clockId, monotonicMs };
}

function moved(at: Circumstances, byMs: number): { wallMs: number; monotonicMs: number } {
  return { wallMs: at.now.wallMs + byMs, monotonicMs: at.now.monotonicMs + byMs };
}

function plus(instant: Instant, secs: number): Instant {
  const ms = secs * 1000;
  return { ...instant, wallMs: instant.wallMs + ms, monotonicMs: instant.monotonicMs + ms };
}

function since(instant: Instant, at: Circumstances): number {
  const sameClock = instant.clockId === at.now.clockId;
  return sameClock ? at.now.monotonicMs - instant.monotonicMs : at.now.wallMs - instant.wallMs;
}

function left(instant: Instant, at: Circumstances): number {
  const sameClock = instant.clockId === at.now.clockId;
  return sameClock ? -since(instant, at) : 2000 - since(instant, at);
}

function leftOf(f: Fact, at: Circumstances): number {
  if (f.expires === null) return Infinity;
  const byClock = left(f.expires, at);
  if (!rebooted(f.expires, f, at)) return byClock;
  const had = Math.max(f.ttl * 1000, f.expires.wallMs - f.renewed.wallMs);
  return Math.min(byClock, had - at.now.monotonicMs);
}

function rebooted(instant: Instant, f: Fact, at: Circumstances): boolean {
  const boot = (clock: string) => clock.split("+")[0];
  const isUptime = !at.now.clockId.includes("+") || at.now.clockId.endsWith("+4026531834");
  return (
    isUptime && f.holder.machineId === at.now.machineId && boot(instant.clockId) !== boot(at.now.clockId)
  );
}

/** Without an expiry, and without a sign of life for too long: only a renewal cures that. */
function forgotten(fact: Fact, at: Circumstances): boolean {
  const isForever = fact.bind === "ttl" && fact.expires === null;
  return isForever && since(fact.beat, at) > at.policy.staleThresholdSecs * 1000;
}

/** A writer lock that stands, of a holder that may be writing. */
function untouchable(fact: Fact, at: Circumstances): boolean {
  return fact.key.startsWith("worktree:") && !forgotten(fact, at);
}
