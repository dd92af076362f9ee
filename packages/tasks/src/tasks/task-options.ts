import { parseOptions, integerFromZero, filledString } from "@periodic-eval/contracts/options";
import * as z from "zod";
import type { ChatOptions, TaskOptions } from "./task.ts";

const places = "a folder, a file, or hf:owner/dataset";

const chatShape = {
  system: z.string().meta({ fix: "Leave it out to pass no system message." }).optional(),
  fewshotAsMultiturn: z.boolean("true or false").meta({ fix: "Leave it out for true." }).optional(),
} satisfies Record<keyof ChatOptions, z.ZodType>;

const positive = "a positive integer, or null";

const taskOptionsSchema = z.strictObject({
  data: filledString(places).meta({ fix: "Say where the documents are." }),
  shots: integerFromZero.meta({ fix: "Leave it out for the task's default." }).optional(),
  fewshotPool: filledString(places).meta({ fix: "Leave it out for the task's pool." }).optional(),
  fewshotSeed: z.int("an integer").meta({ fix: "Leave it out for 1234." }).optional(),
  limit: z
    .int(positive)
    .positive(positive)
    .meta({ fix: "Leave it out for all documents." })
    .nullable()
    .optional(),
  // The task's family checks it.
  subsample: z.unknown().optional(),
  chat: z.strictObject(chatShape).optional(),
} satisfies Record<keyof TaskOptions, z.ZodType>);

/** @throws PeriodicEvalError `config` for a wrong option. */
export function checkTaskOptions(task: string, options: TaskOptions): void {
  parseOptions(`${task} options`, taskOptionsSchema, options);
}
