import { spawnSync } from "node:child_process";
import { afterEach, describe, expect, it, vi } from "vitest";
import { isRunning, endingSignals, exitCodeOf, onEndingSignal } from "./process.ts";

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

const mockExit = () => vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
let stop = () => {};
afterEach(() => stop());

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("onEndingSignal", () => {
  it.each(endingSignals)("calls the listener at the first %s, and ends at a second one at once", (signal) => {
    const [exit, listener] = [mockExit(), vi.fn()];
    stop = onEndingSignal(listener);
    process.emit(signal);
    expect(listener).toHaveBeenCalledExactlyOnceWith(signal);
    expect(exit).not.toHaveBeenCalled();
    process.emit("SIGTERM");
    expect(exit).toHaveBeenCalledExactlyOnceWith(143);
    expect(listener).toHaveBeenCalledOnce();
  });

  it("leaves the second signal to the system, which also ends a busy process", async () => {
    stop = onEndingSignal(() => undefined);
    process.emit("SIGTERM");
    await turn();
    for (const signal of endingSignals) expect(process.listenerCount(signal)).toBe(0);
  });

  it("listens only for the given signals, until it is stopped", () => {
    stop = onEndingSignal(() => undefined, ["SIGHUP"]);
    expect(endingSignals.map((signal) => process.listenerCount(signal))).toEqual(
      endingSignals.map((signal) => (signal === "SIGHUP" ? 1 : 0)),
    );
    stop();
    expect(process.listenerCount("SIGHUP")).toBe(0);
  });
});

it("returns 128 plus the number of the signal", () => {
  expect(endingSignals.map((signal) => [signal, exitCodeOf(signal)])).toEqual([
    ["SIGHUP", 129],
    ["SIGINT", 130],
    ["SIGUSR1", 138],
    ["SIGTERM", 143],
  ]);
});
