import * as z from "zod";
import type { EvaluableModel, VerdictCache } from "@periodic-eval/contracts";
import {
  configError,
  isRecord,
  parseOptions,
  integerFromZero,
  nameSchema,
  numberFromZero,
  objectWith,
  positiveInteger,
} from "@periodic-eval/contracts/options";
import type { JudgePrice } from "./judge-calls.ts";
import type { JudgeMethodName } from "./judge-method.ts";

export interface JudgeOptions {
  /** Any model that generates or returns log-probabilities: a served model, or one in memory. */
  readonly model: EvaluableModel;
  /**
   * - `"json"` (default): one prompt; the reply is one JSON object with all scores.
   * - `"logprob"`: one prompt per score; the score is the mean over the numbers 0–100 that could come next.
   */
  readonly method?: JudgeMethodName;
  /** Names of the scores, each 0–100. Default `aligned`, `coherent`. */
  readonly scores?: readonly string[];
  /**
   * Prompts with the placeholders `{question}` and `{answer}`: by score for `logprob`, one named `json` for `json`. Default: the
   * project's prompts for `aligned` and `coherent`. `GradeRequest.prompts` of the same names take precedence.
   */
  readonly prompts?: Readonly<Record<string, string>>;
  /** Default: the model's name. */
  readonly name?: string;
  /** Maximum length of a reply of method `json`, in tokens. Default 512. A judge that thinks first needs more: a reply
   * that is cut off has no scores, and its verdict is `cut`. */
  readonly maxReplyTokens?: number;
  /** Answers judged concurrently. Default 8. */
  readonly concurrency?: number;
  /** Timeout of one call, including all retries of the model's client. Default 360. */
  readonly timeoutSeconds?: number;
  /**
   * Cap on requests per `grade`, including the retries of a server's client. Answers beyond the cap get an `error` verdict, and so
   * does an answer whose request could not be retried. Default: no cap.
   */
  readonly maxCalls?: number;
  /**
   * Cap on the cost per `grade`, in the currency of `price`. Answers beyond the cap get an `error` verdict. An answer is judged,
   * and a request is retried, only if its maximum cost fits: one input token per byte of its prompts, and the longest reply. A
   * request that may be billed without an answer (a timeout, a 5xx) counts at its maximum; one that cannot be (a refused
   * connection, a 429) counts as 0.
   */
  readonly maxCost?: number;
  readonly price?: JudgePrice;
  /** Default: no cache. */
  readonly cache?: VerdictCache;
}

const amount = numberFromZero();

const judgeSchema = z.strictObject({
  model: z.custom<EvaluableModel>((value) => isRecord(value) && isRecord(value["identity"]), "a model"),
  method: z.enum(["json", "logprob"]).optional(),
  scores: z
    .array(nameSchema, "an array of unique names")
    .min(1, "an array of unique names")
    .refine((names) => new Set(names).size === names.length, "an array of unique names")
    .meta({ fix: "Remove the repetition, or `scores` for aligned, coherent." })
    .optional(),
  // `resolvePrompts` checks the names.
  prompts: z.record(z.string(), z.string()).optional(),
  name: z.string().optional(),
  maxReplyTokens: positiveInteger.optional(),
  concurrency: positiveInteger.optional(),
  timeoutSeconds: z.number("a finite number above 0").positive("a finite number above 0").optional(),
  maxCalls: integerFromZero.optional(),
  maxCost: amount.optional(),
  price: z
    .strictObject({ inputPerMillion: amount, outputPerMillion: amount } satisfies Record<
      keyof JudgePrice,
      z.ZodType
    >)
    .meta({ fix: "Look up the price of the judge's provider." })
    .optional(),
  cache: objectWith<VerdictCache>(["get", "set"], "a cache with `get` and `set`").optional(),
} satisfies Record<keyof JudgeOptions, z.ZodType>);

export function checkJudgeOptions(options: JudgeOptions): void {
  const where = "judgeGrader options";
  parseOptions(where, judgeSchema, options);
  const { price, maxCost } = options;
  if (maxCost !== undefined && price === undefined)
    throw configError({
      where,
      path: ["maxCost"],
      got: `${maxCost} without a price`,
      expected: "a price to compute the cost with",
      fix: "Set price: { inputPerMillion, outputPerMillion }, or use maxCalls.",
    });
}
