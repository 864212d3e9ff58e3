import { describe, expect, test } from "vitest";
import type { Lease } from "../../src/kernel/lease";
import { DEFAULT_POLICY } from "../../src/kernel/policy";
import { bootOf, elapsedMs, instantOf, makeClockId, type Now, remainingMs } from "../../src/kernel/time";
import { type Liveness, standing } from "../../src/kernel/validity";
import { byKey, granted, ISSUE, one, Scene } from "./scene";

function at(lease: Lease, now: Now, liveness: Liveness = "alive") {
  return standing(lease, now, liveness, DEFAULT_POLICY);
}

function finite(ttlSecs = 600) {
  const scene = new Scene();
  return { scene, lease: one(scene.acquire(scene.actor("agent:ann"), ISSUE, { ttlSecs })) };
}

function bound() {
  const scene = new Scene();
  return { scene, lease: one(scene.guard(scene.actor("agent:ann"), "a")) };
}

describe("expiry within one boot", () => {
  test("is exact to the millisecond, by the monotonic clock", () => {
    const { scene, lease } = finite();
    scene.advance(599.999);
    expect(at(lease, scene.now)).toBe("valid");
    scene.advance(0.001);
    expect(at(lease, scene.now)).toBe("expired");
  });

  test("ignores the wall clock, two hours back and three days forward", () => {
    const { scene, lease } = finite();
    scene.advance(10);
    scene.stepWallClock(-7200);
    expect(at(lease, scene.now)).toBe("valid");
    scene.stepWallClock(3 * 86_400);
    expect(at(lease, scene.now)).toBe("valid");
    scene.advance(590);
    scene.stepWallClock(-3 * 86_400);
    expect(at(lease, scene.now)).toBe("expired");
  });
});

describe("expiry across boots", () => {
  test("is by the wall clock plus a grace of 2 s", () => {
    const { scene, lease } = finite();
    scene.reboot({ wallSecs: 601.999 });
    expect(at(lease, scene.now)).toBe("valid");
    scene.advance(0.001);
    expect(at(lease, scene.now)).toBe("expired");
  });

  test("counts what the machine has been up for: a board without a clock boots in the past", () => {
    const { scene, lease } = finite();
    scene.reboot({ wallSecs: -86_400 });
    scene.advance(599);
    expect(at(lease, scene.now)).toBe("valid");
    scene.advance(2);
    expect(at(lease, scene.now)).toBe("expired");
  });

  test("counts it against what the lease really had, not against a shorter TTL of its last renewal", () => {
    const { scene } = finite(3600);
    const lease = one(scene.renew(scene.actor("agent:ann"), byKey(ISSUE), { ttlSecs: 60 }));
    scene.reboot();
    scene.advance(3000);
    expect(at(lease, scene.now)).toBe("valid");
    scene.advance(601);
    expect(at(lease, scene.now)).toBe("expired");
  });

  test("does not count another machine's uptime", () => {
    const { scene, lease } = finite();
    const elsewhere = { ...scene.now, machineId: "m2", clockId: "boot-of-m2", monotonicMs: 1e10 };
    expect(at(lease, elsewhere)).toBe("valid");
    expect(at(lease, { ...elsewhere, wallMs: elsewhere.wallMs + 602_000 })).toBe("expired");
  });

  test("does not count another time namespace's uptime", () => {
    const { scene, lease } = finite();
    const inside = { ...scene.now, clockId: makeClockId("boot-1", "time:2"), monotonicMs: 1e10 };
    expect(at(lease, inside)).toBe("valid");
    expect(at(lease, { ...inside, wallMs: inside.wallMs + 602_000 })).toBe("expired");
  });

  test("does not count it after a reboot either, where the clock may have been set ahead; as it does in the first one", () => {
    const { scene, lease } = finite();
    scene.reboot({ upSecs: 10_000 });
    const { clockId } = scene.now;
    expect(at(lease, { ...scene.now, clockId: makeClockId(clockId, "4026532002") })).toBe("valid");
    expect(at(lease, { ...scene.now, clockId: makeClockId(clockId, "4026531834") })).toBe("expired");
  });

  test("does not count uptime where the machine is not known", () => {
    const scene = new Scene();
    scene.now = { ...scene.now, machineId: "" };
    const lease = one(scene.acquire(scene.actor("agent:ann"), ISSUE));
    scene.reboot({ upSecs: 10_000 });
    expect(at(lease, scene.now)).toBe("valid");
  });
});

describe("stop-idle", () => {
  test("ends a lease 30 s after the stop", () => {
    const { scene } = bound();
    const lease = one(scene.stop(scene.actor("agent:ann"), byKey("file:a")));
    scene.advance(29.999);
    expect(at(lease, scene.now)).toBe("valid");
    scene.advance(0.001);
    expect(at(lease, scene.now)).toBe("stop_idle");
  });

  test("counts uptime after a reboot into the past", () => {
    const { scene } = finite();
    const lease = one(scene.stop(scene.actor("agent:ann"), byKey(ISSUE)));
    scene.reboot({ wallSecs: -86_400 });
    scene.advance(29);
    expect(at(lease, scene.now)).toBe("valid");
    scene.advance(1);
    expect(at(lease, scene.now)).toBe("stop_idle");
  });
});

describe("a process-bound lease", () => {
  test("has no expiry and is not indefinite; a live owner never loses it to the clock", () => {
    const { scene, lease } = bound();
    expect(lease).toMatchObject({ expiresAt: null, maxTotalSecs: null, ttlSecs: 0 });
    scene.advance(30 * 86_400);
    expect(at(lease, scene.now, "alive")).toBe("valid");
  });

  test("ends with its process", () => {
    const { scene, lease } = bound();
    expect(at(lease, scene.now, "dead")).toBe("dead");
  });

  test("whose owner cannot be seen ends 1800 s after the last beat", () => {
    const { scene, lease } = bound();
    scene.advance(1799);
    expect(at(lease, scene.now, "unknown")).toBe("valid");
    scene.advance(1);
    expect(at(lease, scene.now, "unknown")).toBe("expired");
    const beaten = { ...lease, lastBeat: instantOf(scene.now) };
    expect(at(beaten, scene.now, "unknown")).toBe("valid");
  });

  test("that nobody looked up counts as unknown", () => {
    const { scene, lease } = bound();
    scene.advance(1800);
    expect(standing(lease, scene.now, "unknown", scene.policy)).toBe("expired");
    scene.seeAs("unknown");
    granted(scene.guard(scene.actor("agent:bob", "t"), "a"));
  });
});

describe("a TTL-bound lease", () => {
  test.each(["alive", "dead", "unknown"] as const)("ignores its process (%s)", (liveness) => {
    const { scene, lease } = finite();
    scene.advance(599);
    expect(at(lease, scene.now, liveness)).toBe("valid");
  });
});

describe("clocks", () => {
  test("a clock id is the boot and, where there is one, the time namespace", () => {
    expect(makeClockId("b", "")).toBe("b");
    expect(makeClockId("b", "time:7")).toBe("b+time:7");
    expect(bootOf("b+time:7")).toBe("b");
    expect(bootOf("b")).toBe("b");
  });

  test("elapsed and remaining are monotonic within a clock, by the wall across clocks", () => {
    const a = { clockId: "x", monotonicMs: 1000, wallMs: 50_000 };
    const b = { clockId: "x", monotonicMs: 4000, wallMs: 10_000 };
    expect(elapsedMs(a, b)).toBe(3000);
    expect(remainingMs(b, a)).toBe(3000);
    expect(elapsedMs(a, { ...b, clockId: "y" })).toBe(-40_000);
    expect(remainingMs(b, { ...a, clockId: "y" })).toBe(-38_000);
  });
});
