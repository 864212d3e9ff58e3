import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { treePicture } from "../../../support/tree-picture";
import { onPath } from "../dispatching";
import { AT_ONCE } from "../stage";
import { type Cell, expect, type Group, Lacking } from "./cell";

const REAL: Cell = { name: "doctor-real", title: "`agent doctor --real` passes, and leaves nothing behind" };

/** As a person who has the program on the PATH runs it. */
export const tryingReal: Group = {
  cells: [REAL],
  play: (trial) =>
    trial.on(AT_ONCE, (stage) =>
      trial.check(REAL, async () => {
        const { program, installed } = trial;
        if (program.name !== program.harness) throw new Lacking("doctor runs the program in its usual mode");
        // Not in the room, whose path is too long for the sockets that programs make.
        const temporary = mkdtempSync(join(tmpdir(), "real-"));
        const before = treePicture(stage.home);
        const { stdout, stderr } = await stage.try(
          ["agent", "doctor", "--real", "--no-canary", program.harness, "--json"],
          null,
          { PATH: `${onPath(stage)}:${stage.env["PATH"]}`, TMPDIR: temporary },
        );
        const [report] = JSON.parse(stdout || "{}").data?.real ?? [];
        const left = readdirSync(temporary);
        rmSync(temporary, { recursive: true, force: true });
        expect(report !== undefined, "it answered nothing", stderr);
        expect(left.length === 0, "something is left in the temporary folder", left.join(", "));
        expect(
          JSON.stringify(treePicture(stage.home)) === JSON.stringify(before),
          "something is left in the person's home",
        );
        if (report.outcome === "not_triable") throw new Lacking(report.why);
        expect(report.outcome === "passed", `${report.outcome}`, report.why ?? "");
        expect(report.version === installed.version, `it calls itself ${report.version}`);
        return "passed";
      }),
    ),
};
