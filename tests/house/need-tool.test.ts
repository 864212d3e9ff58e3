import { describe, expect, it } from "vitest";
import packages from "../../scripts/debian-packages.json";
import { needTool } from "./need-tool";

describe("needTool", () => {
  it.each(Object.values(packages.test))("finds %s, which npm test installs", (command) => {
    expect(() => needTool(command)).not.toThrow();
  });

  it("refuses a program that npm test would not install", () => {
    expect(() => needTool("no-such-program")).toThrow("debian-packages.json");
  });
});
