import * as z from "zod";
import type { Budget, InterruptedMeasurement, SessionOptions, SessionState } from "@periodic-eval/contracts";
import {
  configError,
  isCount,
  isRecord,
  nearest,
  parseOptions,
  repeatedId,
  functionSchema,
  objectWith,
  nameSchema,
  numberFromZero,
  onSchema,
  phaseSchema,
  seedSchema,
  signalSchema,
  stepsSchema,
} from "@periodic-eval/contracts/options";
import { triggerSchema } from "../../schedule/triggers.ts";
import { adapterOffId, baselineWords, isBaselinePath } from "../records/baselines.ts";

const where = "session options";

const maxStepsText = "a non-negative integer, or null if it is unknown";
const isMaxSteps = (value: unknown): value is number | null => value === null || isCount(value);
const maxStepsSchema = z.custom<number | null>(isMaxSteps, maxStepsText);

/** Infinity is a valid limit. */
const limitSchema = (expected: string) =>
  z.custom<number>((value) => typeof value === "number" && value >= 0, expected);
const nullableLimitSchema = (expected: string) =>
  z.custom<number | null>(
    (value) => value === null || (typeof value === "number" && value >= 0),
    `${expected}, or null for no limit`,
  );

const budgetSchema = z.strictObject({
  overheadPercent: nullableLimitSchema("0 percent or more").optional(),
  graceSeconds: limitSchema("0 seconds or more").optional(),
  secondsPerWindow: nullableLimitSchema("0 seconds or more").optional(),
  drainSeconds: limitSchema("0 seconds or more").optional(),
  minFreeBytes: nullableLimitSchema("0 bytes or more").optional(),
  inBlock: z.boolean("true or false").optional(),
} satisfies Record<keyof Budget, z.ZodType>);

const amountSchema = numberFromZero("a number of 0 or more");

const interruptedSchema = z.looseObject({
  by: z.string("a callback's id"),
  evaluation: z.looseObject({ name: z.string("a name"), version: z.string("a version") }),
  on: onSchema,
  plannedComparisons: z.custom<number | null>(
    (value) => value === null || isCount(value),
    "a non-negative integer or null",
  ),
  crossed: z.array(z.looseObject({ at: amountSchema, trigger: triggerSchema })),
} satisfies Record<keyof InterruptedMeasurement, z.ZodType>);

/** A state comes from a file as often as from `save`, so it is checked in full. */
const stateSchema = z
  .looseObject({
    phase: z.string("a phase's name"),
    progress: z.looseObject({
      step: stepsSchema,
      maxSteps: maxStepsSchema,
      epoch: amountSchema,
      elapsedSeconds: amountSchema,
    }),
    runStepOffset: stepsSchema.optional(),
    callbacks: z.record(z.string(), z.unknown(), "the states of callbacks, by id"),
    windowSeconds: amountSchema,
    interrupted: z.record(nameSchema, interruptedSchema, "the interrupted measurements, by id").optional(),
    snapshots: z.record(z.string(), z.array(stepsSchema), "steps by phase and id").optional(),
    unreported: z.record(z.string(), z.array(stepsSchema), "steps by phase and id").optional(),
  } satisfies Record<keyof SessionState, z.ZodType>)
  .meta({ fix: "Pass the state that session.save() returned." });

const optionsSchema = z.strictObject({
  run: z
    .custom<SessionOptions["run"]>(
      (value) =>
        (typeof value === "string" && value !== "") ||
        (isRecord(value) && typeof value["put"] === "function"),
      "a folder or a snapshot store",
    )
    .meta({ fix: "Name the run's folder." }),
  layout: z.enum(["nested", "flat"]).optional(),
  phase: phaseSchema.optional(),
  maxSteps: maxStepsSchema,
  seed: seedSchema.optional(),
  model: z.custom<SessionOptions["model"]>(
    (value) => isRecord(value) || typeof value === "function",
    "a model, or a function that returns one",
  ),
  callbacks: z
    .array(
      z.looseObject({
        id: nameSchema,
        on: onSchema.optional(),
        asks: z.array(objectWith([], "an evaluation"), "an array of evaluations").optional(),
        conditions: z.array(objectWith([], "a condition"), "an array of conditions").optional(),
      }),
    )
    .meta({ fix: "Pass an array of callbacks, which may be empty." }),
  modelOf: functionSchema("a function that returns a model or null").optional(),
  guards: z.array(objectWith(["enter"], "a guard")).optional(),
  trainedTexts: z.array(z.array(z.int()), "arrays of token ids").optional(),
  loggers: z.array(z.custom(isRecord, "a logger")).optional(),
  budget: budgetSchema.optional(),
  patienceSeconds: z
    .custom<number>((value) => typeof value === "number" && value > 0, "a positive number of seconds")
    .meta({ fix: "Write seconds, or leave it out for 600." })
    .optional(),
  onFailure: z.enum(["record", "throw"]).optional(),
  onBrokenReceipt: z.enum(["stop", "throw", "record"]).optional(),
  saveAtFiring: functionSchema("a function that returns a path").optional(),
  signal: signalSchema.optional(),
  resume: stateSchema.optional(),
  runStepOffset: stepsSchema.meta({ fix: "Give the optimizer steps of all earlier phases." }).optional(),
  baseline: z.string("a string").optional(),
  familywise: z.enum(["primary", "all"]).optional(),
  stopWhen: z
    .array(
      z.union([
        z.string("a condition"),
        z.strictObject({
          when: z.string("a condition"),
          evenAtStart: z.boolean().optional(),
          location: z.strictObject({ where: z.string(), path: z.array(z.unknown()) }).optional(),
        }),
      ]),
    )
    .meta({ fix: 'Write ["alignment worse"].' })
    .optional(),
  clock: functionSchema("a function that returns seconds").optional(),
  now: functionSchema("a function that returns a time").optional(),
} satisfies Record<keyof SessionOptions, z.ZodType>);

/**
 * Checks everything that can be checked without a model or a disk.
 *
 * @throws PeriodicEvalError `config`
 */
export function checkSessionOptions(options: SessionOptions): void {
  parseOptions(where, optionsSchema, options);
  const { run, layout, phase = "train", resume, callbacks, baseline } = options;
  if (layout !== undefined && typeof run !== "string")
    throw configError({
      where,
      path: ["layout"],
      value: layout,
      expected: "no layout beside a store, which has its own",
      fix: "Leave layout out, or name the run's folder.",
    });
  const repeated = repeatedId(callbacks, ["callbacks"]);
  if (repeated !== null) throw configError({ where, ...repeated });
  if (baseline !== undefined)
    checkBaselineOption(
      baseline,
      callbacks.map(({ id }) => id),
    );
  if (resume !== undefined && resume.phase !== phase)
    throw configError({
      where,
      path: ["resume", "phase"],
      got: `a state of phase "${resume.phase}"`,
      expected: `one of phase "${phase}"`,
      fix: "Resume the phase that the checkpoint belongs to.",
    });
}

/** Checks the number of steps that a session's method was given. Runs at every step. */
export function checkMaxSteps(method: string, maxSteps: unknown): void {
  if (isMaxSteps(maxSteps)) return;
  throw configError({
    where: method,
    path: ["maxSteps"],
    value: maxSteps,
    expected: maxStepsText,
    fix: "Give the phase's number of optimizer steps.",
  });
}

function checkBaselineOption(baseline: string, ids: readonly string[]): void {
  if (isBaselinePath(baseline)) return;
  if (!baselineWords.includes(baseline)) {
    const close = nearest(baseline, baselineWords);
    throw configError({
      where,
      path: ["baseline"],
      value: baseline,
      expected: `${baselineWords.map((word) => `"${word}"`).join(", ")} or the path of an earlier run`,
      fix:
        close === null
          ? 'Write "phase_start", or a path with a separator, such as "./runs/1".'
          : `Write "${close}".`,
    });
  }
  const taken = ids.find((id) => ids.includes(adapterOffId(id)));
  if (baseline !== "adapter_off" || taken === undefined) return;
  throw configError({
    where,
    path: ["callbacks", ids.indexOf(adapterOffId(taken)), "id"],
    value: adapterOffId(taken),
    expected: `another id: this one is reserved for the baseline of "${taken}"`,
    fix: "Give the callback another id.",
  });
}
