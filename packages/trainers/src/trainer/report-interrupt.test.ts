import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, expect, it, vi } from "vitest";
import { temporaryFolder } from "../testing/tiny-run.ts";
import { interruptedText, reportInterrupt } from "./report-interrupt.ts";

const progress = { step: 7, maxSteps: 20, epoch: 0, elapsedSeconds: 1, ended: false };
const session = { phase: "em", progress };

afterEach(() => process.removeAllListeners("SIGINT"));

it("names the step, the newest checkpoint and how to continue", async () => {
  const runDir = await temporaryFolder();
  const text = (resume: "auto" | "never") => interruptedText({ session, runDir, resume });
  expect(text("auto")).toMatch(
    /^\[periodic-eval\] em interrupted at step 7 of 20\. .*saveSteps.* start over\.$/,
  );
  for (const name of ["step_2", "step_10", "step_12.draft"])
    await mkdir(join(runDir, "checkpoints", "em", name), { recursive: true });
  expect(text("auto")).toContain(
    `${join(runDir, "periodic_eval")}, and the newest checkpoint is of step 10. Run it again to`,
  );
  expect(text("never")).toContain('Run it again with resume: "auto" to continue');
});

it("prints it once and exits with 130, as nobody else listens", () => {
  const exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  reportInterrupt({ session, runDir: "none", resume: "auto" });
  process.emit("SIGINT");
  expect(exit).toHaveBeenCalledExactlyOnceWith(130);
  expect(warn).toHaveBeenCalledOnce();
  expect(process.listenerCount("SIGINT")).toBe(0);
});

it("leaves Ctrl-C to a program that listens for it, before or after training began", () => {
  const exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
  const own = vi.fn();
  process.on("SIGINT", own);
  const stop = reportInterrupt({ session, runDir: "none", resume: "auto" });
  expect(process.listeners("SIGINT")).toEqual([own]);
  stop();
  process.removeAllListeners("SIGINT");
  reportInterrupt({ session, runDir: "none", resume: "auto" });
  process.on("SIGINT", own);
  process.emit("SIGINT");
  expect(own).toHaveBeenCalledOnce();
  expect(exit).not.toHaveBeenCalled();
});

it("stops listening at the end of training", () => {
  reportInterrupt({ session, runDir: "none", resume: "auto" })();
  expect(process.listenerCount("SIGINT")).toBe(0);
});
