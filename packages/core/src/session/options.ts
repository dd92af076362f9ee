import { checkKeys, checkName } from "../callback/check-options.ts";
import { PeriodicEvalError } from "../errors.ts";
import type { SessionOptions } from "./types.ts";

const known = {
  run: true,
  phase: true,
  maxSteps: true,
  seed: true,
  model: true,
  callbacks: true,
  guards: true,
  loggers: true,
  budget: true,
  onFailure: true,
  onBrokenReceipt: true,
  signal: true,
  resume: true,
  runStepOffset: true,
  baseline: true,
  clock: true,
  now: true,
} as const satisfies Record<keyof SessionOptions, true>;

const choices = {
  onFailure: ["record", "throw"],
  onBrokenReceipt: ["stop", "throw", "record"],
  baseline: ["phase_start", "run_start"],
} as const;

/** Checks what can be checked without a model or a disk. */
export function checkSessionOptions(options: SessionOptions): void {
  checkKeys("session options", options, Object.keys(known));
  const { run, phase = "train", maxSteps, budget, resume, runStepOffset } = options;
  if (typeof run !== "string" && typeof run?.put !== "function")
    throw wrong("run", run, "a folder or a snapshot store", "Name the run's folder.");
  if (run === "") throw wrong("run", run, "a folder", "Name the run's folder.");
  checkName("session option phase", phase);
  checkMaxSteps("session option maxSteps", maxSteps);
  for (const [name, allowed] of Object.entries(choices)) {
    const given = options[name as keyof typeof choices];
    if (given !== undefined && !(allowed as readonly string[]).includes(given)) {
      throw wrong(name, given, allowed.join(" or "), "Choose one of these.");
    }
  }
  if (budget !== undefined) {
    checkKeys("session option budget", budget, ["drainSeconds"]);
    const { drainSeconds = 0 } = budget;
    if (!(drainSeconds >= 0))
      throw wrong("budget.drainSeconds", drainSeconds, "0 seconds or more", "Correct the number.");
  }
  if (runStepOffset !== undefined && !isCount(runStepOffset)) {
    throw wrong(
      "runStepOffset",
      runStepOffset,
      "a whole number of 0 or more",
      "Give the optimizer steps of all earlier phases.",
    );
  }
  checkCallbacks(options);
  if (resume !== undefined && resume.phase !== phase) {
    throw wrong(
      "resume",
      `a state of phase "${resume.phase}"`,
      `one of phase "${phase}"`,
      "Resume the phase that the checkpoint belongs to.",
    );
  }
}

export function checkMaxSteps(where: string, maxSteps: unknown): void {
  if (maxSteps === null || isCount(maxSteps)) return;
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: shown(maxSteps),
    expected: "a whole number, or null where it is not known",
    fix: "Give the phase's number of optimizer steps.",
  });
}

export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function checkCallbacks({ callbacks }: SessionOptions): void {
  if (!Array.isArray(callbacks))
    throw wrong("callbacks", callbacks, "a list", "Pass `callbacks: []` where there is none.");
  const seen = new Set<string>();
  for (const [index, callback] of callbacks.entries()) {
    checkName(`session option callbacks[${index}].id`, callback.id);
    if (seen.has(callback.id)) {
      throw wrong(
        `callbacks[${index}].id`,
        `a second callback with id "${callback.id}"`,
        "unique ids",
        "Give one of them another id.",
      );
    }
    seen.add(callback.id);
  }
}

function wrong(option: string, got: unknown, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where: `session option ${option}`,
    got: shown(got),
    expected,
    fix,
  });
}

function shown(value: unknown): string {
  if (typeof value === "string") return value;
  return typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
}
