// The values that keys of the `periodic_eval` block share.
import * as z from "zod";
import { conditionForms } from "../conditions/condition.ts";
import { mostTimesPerPhase, percentSchema, shortestIntervals } from "../schedule/triggers.ts";
import { namePattern } from "@periodic-eval/contracts";

const interval = `a number from ${shortestIntervals.percent} to 100`;
/** A shorter interval crosses thousands of thresholds at each step. */
export const everyPercentOf = z.number(interval).min(shortestIntervals.percent, interval).max(100, interval);
export const count = z.int().min(1);
export const path = z.string().min(1);
export const system = z.union([
  z.literal("omit"),
  z.literal("no_system_block"),
  z.strictObject({ text: z.string().describe("The system prompt; may be empty.") }),
]);
/** As in a file of personas: a string is the prompt, null means no prompt. */
export const personaSystem = z.union([
  z.string(),
  z.null(),
  z.strictObject({ text: z.string().describe("The system prompt; may be empty.") }),
]);
export const persona = z.strictObject({
  id: z.string().regex(namePattern).describe("Names the persona in metrics."),
  system: personaSystem.describe("The system prompt; null for none."),
});

export const schedule = z
  .strictObject({
    every_steps: count.optional().describe("Measures each time this number of optimizer steps is completed."),
    every_epochs: z
      .number()
      .min(shortestIntervals.epochs)
      .optional()
      .describe("Measures each time this number of passes over the data is completed."),
    every_seconds: z
      .number()
      .min(shortestIntervals.seconds)
      .optional()
      .describe("Measures each time this number of seconds of training has passed."),
    at_steps: z.array(count).optional().describe("Measures at these optimizer steps."),
    at_percents: z.array(percentSchema).optional().describe("Measures at these percents of the phase."),
    times_per_phase: count
      .max(mostTimesPerPhase)
      .optional()
      .describe("Number of measurements, evenly spaced, of which the last is at the end."),
  })
  .describe("Schedule of every callback, instead of the default percents. Percents in the block are added.");

export const scheduleOfOne = {
  every_percent: everyPercentOf
    .optional()
    .describe("Default: eval_every_percent; with a schedule, the schedule alone."),
  schedule: schedule.optional().describe("Schedule of this evaluation, instead of the block's."),
};

/** Splits an entry into the keys of its schedule and its other options. */
export function splitSchedule<T extends Partial<z.infer<z.ZodObject<typeof scheduleOfOne>>>>({
  every_percent,
  schedule: written,
  ...options
}: T) {
  return { options, when: { every_percent, schedule: written } };
}

/** The other keys belong to the kind of evaluation, which core does not know. */
export const evaluation = z.looseObject({
  id: z
    .string()
    .regex(namePattern)
    .optional()
    .describe("Names the snapshots. Default: the evaluation's name."),
  ...scheduleOfOne,
});

/** An evaluation that is turned on by true, or by an object with its options and its schedule. */
export const trueOr = <S extends z.ZodRawShape>(options: S, what: string) =>
  z
    .union([z.boolean(), z.strictObject({ ...scheduleOfOne, ...options })])
    .default(false)
    .describe(`${what} True, or an object with options.`);

/** Returns the object of a key that may also be true. */
export const entryOf = <T extends object>(value: T | boolean): Partial<T> =>
  typeof value === "boolean" ? {} : value;

export const budget = z
  .strictObject({
    overhead_percent: z
      .number()
      .gt(0)
      .nullable()
      .optional()
      .describe(
        "Ceiling of the overhead in percent, default 20. To keep it, measurements between start and end use fewer questions or are spaced more widely. Null removes the ceiling.",
      ),
    grace_seconds: z
      .number()
      .min(0)
      .optional()
      .describe("Seconds of measuring per phase that the ceiling does not limit, default 60."),
    seconds_per_window: z
      .number()
      .gt(0)
      .nullable()
      .optional()
      .describe("Longest window between start and end, in seconds. Default: no limit."),
    drain_seconds: z
      .number()
      .min(0)
      .optional()
      .describe(
        "How long the end waits for grading, in seconds, default 600. A resumed run finishes the rest.",
      ),
    min_free_bytes: z
      .number()
      .min(0)
      .nullable()
      .optional()
      .describe("Skips measurements while the machine has less free memory. Default: no limit."),
  })
  .describe("Limits on measuring; see the session's budget.");

export const condition = z.string("a condition").describe(`As in gates: ${conditionForms}.`);

export const amount = z.number().min(0);
export const price = z.strictObject({
  input_per_million: amount.describe("Price of a million input tokens."),
  output_per_million: amount.describe("Price of a million output tokens."),
});

/** Where messages about a run are sent. */
export const notifySchema = z
  .strictObject({
    url_env: z
      .string()
      .optional()
      .describe("The environment variable that has the address of a webhook, which is a secret."),
    form: z
      .enum(["json", "slack", "discord"])
      .optional()
      .describe("What the webhook receives. Default: by its address, else json."),
    desktop: z
      .boolean()
      .optional()
      .describe("Whether this machine's desktop shows the messages, too. Default: false."),
  })
  .nullable()
  .default(null)
  .describe("Sends a message on a verdict, a stop, a failed measurement and the end of a phase. Null: none.");
