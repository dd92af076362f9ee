import * as tf from "@tensorflow/tfjs";
import { endingSignals } from "@periodic-eval/store";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, expect, it, vi, type MockInstance } from "vitest";
import { SFTTrainer } from "../sft/sft-trainer.ts";
import { openTiny } from "../sft/tiny-sft.test-data.ts";
import { busyConfig, rows, temporaryFolder, tokenizer } from "../testing/tiny-run.test-data.ts";
import { interruptedText, interruption } from "./report-interrupt.ts";

const progress = { step: 7, maxSteps: 20, epoch: 0, elapsedSeconds: 1, ended: false };
const session = { phase: "em", progress };

let exit: MockInstance<typeof process.exit>;
let warn: MockInstance<typeof console.warn>;
beforeAll(async () => {
  await tf.setBackend("cpu");
});
beforeEach(() => {
  exit = vi.spyOn(process, "exit").mockImplementation(() => undefined as never);
  warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
// Other tests of this process may have left listeners.
const removeListeners = () => endingSignals.forEach((signal) => process.removeAllListeners(signal));
beforeEach(removeListeners);
afterEach(removeListeners);

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

it("prints escape sequences in the name of a folder escaped", () => {
  const { listen, stop, endProcess } = interruption();
  listen();
  process.emit("SIGINT");
  stop();
  endProcess({ session, runDir: "runs/\x1b[2J", resume: "auto" });
  expect(warn.mock.calls[0]![0]).toContain(String.raw`runs/\x1b[2J`);
});

const interrupted = { session, runDir: "none", resume: "auto" } as const;

it.each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
  ["SIGHUP", 129],
  ["SIGUSR1", 138],
] as const)("aborts training at %s, prints it once and exits with %i", (name, code) => {
  const { signal, listen, stop, endProcess } = interruption();
  listen();
  endProcess(interrupted);
  expect(exit).not.toHaveBeenCalled();
  process.emit(name);
  expect(signal.aborted).toBe(true);
  expect(exit).not.toHaveBeenCalled();
  stop();
  endProcess(interrupted);
  expect(exit).toHaveBeenCalledExactlyOnceWith(code);
  expect(warn).toHaveBeenCalledOnce();
  expect(process.listenerCount(name)).toBe(0);
});

it("leaves a signal to a program that listens for it, before or after training began", () => {
  const own = vi.fn();
  process.on("SIGINT", own);
  const first = interruption();
  first.listen();
  expect(process.listeners("SIGINT")).toEqual([own]);
  expect(process.listenerCount("SIGTERM")).toBe(1);
  first.stop();
  process.removeAllListeners("SIGINT");
  const second = interruption();
  second.listen();
  process.on("SIGINT", own);
  process.emit("SIGINT");
  expect(own).toHaveBeenCalledOnce();
  expect(second.signal.aborted).toBe(false);
  second.endProcess(interrupted);
  expect(exit).not.toHaveBeenCalled();
});

it("stops listening at the end of training", () => {
  const { listen, stop } = interruption();
  listen();
  stop();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"] as const)
    expect(process.listenerCount(name)).toBe(0);
});

it("writes a checkpoint of the current step before it ends the process", async () => {
  const runDir = await temporaryFolder();
  const sft = new SFTTrainer({ model: openTiny(), tokenizer, dataset: rows(20), runDir, config: busyConfig });
  sft.addCallback({
    id: "ends",
    onStepEnd: ({ progress }) => {
      if (progress.step === 3) process.emit("SIGTERM");
    },
  });
  const { steps } = await sft.train();
  expect(exit).toHaveBeenCalledExactlyOnceWith(143);
  expect(steps).toBe(3);
  expect(await readdir(join(runDir, "checkpoints/train"))).toEqual(["step_3"]);
});
