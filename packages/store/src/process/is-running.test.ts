import { spawnSync } from "node:child_process";
import { afterEach, describe, expect, it, vi } from "vitest";
import { isRunning } from "./is-running.ts";

describe("isRunning", () => {
  afterEach(() => void vi.restoreAllMocks());

  it("returns true for a process that runs and false for one that has ended", () => {
    expect(isRunning(process.pid)).toBe(true);
    expect(isRunning(spawnSync(process.execPath, ["--version"]).pid)).toBe(false);
  });

  it("returns true for a process of another user", () => {
    vi.spyOn(process, "kill").mockImplementation(() => {
      throw Object.assign(new Error("operation not permitted"), { code: "EPERM" });
    });
    expect(isRunning(1)).toBe(true);
  });
});
