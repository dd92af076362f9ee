import { integerFromZero, positiveInteger } from "@periodic-eval/contracts/options";
import * as z from "zod";

export interface RequestLimits {
  /** Time limit of one attempt, including the body of the reply. */
  readonly timeoutSeconds?: number;
  /** Maximum number of attempts after the first. */
  readonly maxRetries?: number;
}

const time = "a number above 0, at most 86400 (one day)";

/** Returns the schemas of the two limits with these defaults. Spread them into an options schema. */
export const requestLimits = ({ timeoutSeconds, maxRetries }: Required<RequestLimits>) =>
  ({
    timeoutSeconds: z
      .number(time)
      .positive(time)
      .max(86_400, time)
      .meta({ fix: `Remove it for the default, ${timeoutSeconds}.` })
      .default(timeoutSeconds),
    maxRetries: integerFromZero
      .meta({ fix: `Remove it for the default, ${maxRetries}.` })
      .default(maxRetries),
  }) satisfies Record<keyof RequestLimits, z.ZodType>;

/** Returns the schemas that every model on a server has. Spread them into an options schema. */
export const servedOptions = (limits: Required<RequestLimits>) => ({
  model: z
    .string("a model name")
    .regex(/\S/, "a model name")
    .meta({ fix: "Give the model's name on the server." }),
  apiKeyEnv: z.string("the name of an environment variable, or null").nullable().optional(),
  ...requestLimits(limits),
  concurrency: positiveInteger.default(8),
});

/** Fewest requests that a call of an evaluation makes, unless its items are over. */
const requestsPerCall = 16;

/** Returns how many calls fill all requests in flight while the answers of one more are read. */
export const concurrentCallsFor = (requests: number): number => 1 + Math.ceil(requests / requestsPerCall);
