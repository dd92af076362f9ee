import { checkKeys } from "../../internal/check-keys.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { checkWord } from "../../internal/check-word.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { isCount } from "../../internal/is-count.ts";
import { checkName, checkPhaseName } from "../../internal/names.ts";
import { checkTriggers } from "../../schedule/check-triggers.ts";
import { checkBaseline } from "../records/baseline.ts";
import type { Budget, SessionOptions } from "../../contracts/session.ts";

const known = {
  run: true,
  layout: true,
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
  saveAtFiring: true,
  signal: true,
  resume: true,
  runStepOffset: true,
  baseline: true,
  familywise: true,
  clock: true,
  now: true,
} as const satisfies Record<keyof SessionOptions, true>;

const choices = {
  layout: ["nested", "flat"],
  onFailure: ["record", "throw"],
  onBrokenReceipt: ["stop", "throw", "record"],
  familywise: ["primary", "all"],
} as const;

/** Checks what can be checked without a model or a disk. */
export function checkSessionOptions(options: SessionOptions): void {
  checkKeys("session options", options, Object.keys(known));
  const { run, layout, phase = "train", seed, maxSteps, budget, resume, runStepOffset } = options;
  if (typeof run !== "string" && typeof run?.put !== "function")
    throw wrong("run", run, "a folder or a snapshot store", "Name the run's folder.");
  if (run === "") throw wrong("run", run, "a folder", "Name the run's folder.");
  if (layout !== undefined && typeof run !== "string")
    throw wrong(
      "layout",
      layout,
      "none beside a store, which has its own",
      "Leave layout out, or name the run's folder.",
    );
  checkPhaseName("session option phase", phase);
  if (seed !== undefined) checkSeed("session option seed", seed);
  checkMaxSteps("session option maxSteps", maxSteps);
  for (const [name, allowed] of Object.entries(choices)) {
    const given = options[name as keyof typeof choices];
    if (given !== undefined) checkWord(`session option ${name}`, given, allowed);
  }
  if (budget !== undefined) checkBudget(budget);
  if (runStepOffset !== undefined && !isCount(runStepOffset)) {
    throw wrong(
      "runStepOffset",
      runStepOffset,
      "a whole number of 0 or more",
      "Give the optimizer steps of all earlier phases.",
    );
  }
  checkCallbacks(options);
  checkBaseline(options);
  if (resume !== undefined) checkResume(resume, phase);
}

const budgetNames = {
  overheadPercent: true,
  secondsPerWindow: true,
  drainSeconds: true,
  minFreeBytes: true,
} as const satisfies Record<keyof Budget, true>;

function checkBudget(budget: Budget): void {
  checkKeys("session option budget", budget, Object.keys(budgetNames));
  const amounts = {
    overheadPercent: "0 percent or more, or null for no limit",
    secondsPerWindow: "0 seconds or more, or null for no limit",
    drainSeconds: "0 seconds or more",
    minFreeBytes: "0 bytes or more, or null for no limit",
  };
  for (const [name, expected] of Object.entries(amounts)) {
    const given: unknown = budget[name as keyof Budget];
    if (given === undefined || (given === null && expected.includes("null"))) continue;
    if (typeof given === "number" && given >= 0) continue;
    throw wrong(`budget.${name}`, given, expected, "Correct the number.");
  }
}

/** A state comes from a file as often as from `save`. */
function checkResume(state: unknown, phase: string): void {
  const fix = "Pass the state as session.save() gave it.";
  const refuse = (part: string, got: unknown, expected: string) => wrong(`resume${part}`, got, expected, fix);
  if (!isObject(state)) throw refuse("", state, "what session.save() returned");
  if (state["phase"] !== phase) {
    throw wrong(
      "resume",
      `a state of phase ${quoteValue(state["phase"])}`,
      `one of phase "${phase}"`,
      "Resume the phase that the checkpoint belongs to.",
    );
  }
  const { progress, owed, runStepOffset, callbacks, windowSeconds } = state;
  const checkAmount = (part: string, amount: unknown) => {
    if (!(Number.isFinite(amount) && (amount as number) >= 0)) throw refuse(part, amount, "0 or more");
  };
  if (!isObject(progress)) throw refuse(".progress", progress, "a progress");
  if (!isCount(progress["step"])) throw refuse(".progress.step", progress["step"], "a whole number");
  checkMaxSteps("session option resume.progress.maxSteps", progress["maxSteps"]);
  checkAmount(".progress.epoch", progress["epoch"]);
  checkAmount(".progress.elapsedSeconds", progress["elapsedSeconds"]);
  if (owed !== undefined) checkOwed(owed, refuse);
  checkAmount(".windowSeconds", windowSeconds);
  if (!isCount(runStepOffset)) throw refuse(".runStepOffset", runStepOffset, "a whole number");
  if (!isObject(callbacks)) throw refuse(".callbacks", callbacks, "states by callback id");
}

function checkOwed(
  owed: unknown,
  refuse: (part: string, got: unknown, expected: string) => PeriodicEvalError,
): void {
  if (!isObject(owed)) throw refuse(".owed", owed, "owed measurements by id");
  for (const [id, one] of Object.entries(owed)) {
    const part = `.owed.${id}`;
    checkName(`session option resume${part}`, id);
    if (!isObject(one)) throw refuse(part, one, "an owed measurement");
    const { by, evaluation, on, crossed, plannedLooks } = one;
    if (typeof by !== "string") throw refuse(`${part}.by`, by, "a callback's id");
    if (
      !isObject(evaluation) ||
      typeof evaluation["name"] !== "string" ||
      typeof evaluation["version"] !== "string"
    )
      throw refuse(`${part}.evaluation`, evaluation, "its name and version");
    checkWord(`session option resume${part}.on`, on, ["model", "base"]);
    if (plannedLooks !== null && !isCount(plannedLooks))
      throw refuse(`${part}.plannedLooks`, plannedLooks, "a whole number or null");
    if (!Array.isArray(crossed)) throw refuse(`${part}.crossed`, crossed, "a list of crossings");
    for (const crossing of crossed as readonly unknown[]) {
      if (!isObject(crossing) || !Number.isFinite(crossing["at"]))
        throw refuse(`${part}.crossed`, crossing, "thresholds, each with its trigger");
      checkTriggers([crossing["trigger"]], `session option resume${part}.crossed`);
    }
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The random streams are named by it, and provenance tells it. */
export function checkSeed(where: string, seed: unknown): void {
  if (typeof seed === "string") return;
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: quoteValue(seed),
    expected: "a text",
    fix: `Write "${String(seed)}".`,
  });
}

export function checkMaxSteps(where: string, maxSteps: unknown): void {
  if (maxSteps === null || isCount(maxSteps)) return;
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: quoteValue(maxSteps),
    expected: "a whole number, or null where it is not known",
    fix: "Give the phase's number of optimizer steps.",
  });
}

function checkCallbacks({ callbacks }: SessionOptions): void {
  if (!Array.isArray(callbacks))
    throw wrong("callbacks", callbacks, "a list", "Pass `callbacks: []` where there is none.");
  const seen = new Set<string>();
  for (const [index, callback] of callbacks.entries()) {
    checkName(`session option callbacks[${index}].id`, callback.id);
    if (callback.on !== undefined) checkWord(`callback "${callback.id}" on`, callback.on, ["model", "base"]);
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
    got: typeof got === "string" ? got : quoteValue(got),
    expected,
    fix,
  });
}
