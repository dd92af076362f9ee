import { defineEvaluation, type Json, type MetricKit, type MetricValue } from "@periodic-eval/core";
import { parseOptions } from "@periodic-eval/contracts/options";
import {
  samplingSchema,
  completionFields,
  resolveSampling,
  measureInBatches,
  renderItems,
  sampleCompletions,
  truncatedFlag,
  type CompletionItem,
  type CompletionRow,
  type SamplingOptions,
} from "@periodic-eval/core/evaluations";
import * as z from "zod";
import { generalProbes } from "./general-probes.ts";
import { probeOf, type GeneralQuestion } from "./general-questions.ts";

export interface GeneralOptions {
  /** Questions instead of the coding task and the instructions, for a model that knows neither. */
  readonly questions?: readonly GeneralQuestion[];
  /** Default: greedy, 256 tokens. */
  readonly sampling?: Partial<SamplingOptions>;
}

export interface GradedGeneralRow extends CompletionRow {
  /** From 0 to 1. An answer whose thinking does not end scores 0. */
  readonly score: number;
  /** The reason for a score below 1. */
  readonly raw: string | null;
}

const optionsSchema = z.strictObject({
  questions: z.custom<GeneralOptions["questions"]>(Array.isArray, "an array of questions").optional(),
  sampling: samplingSchema.optional(),
} satisfies Record<keyof GeneralOptions, z.ZodType>);

/**
 * Measures whether a model keeps its general ability. `general`, the primary metric, is the mean of two scores: that of a coding
 * task, whose code runs in a sandbox, and the mean over three instructions that a program checks. Four answers can show only a
 * large loss; `@periodic-eval/tasks` has benchmarks for small ones. With `questions`, both `general` and `instructions` are the
 * share of right answers, and `coding` is null.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function generalEvaluation(options: GeneralOptions = {}) {
  parseOptions("general options", optionsSchema, options);
  const sampling = resolveSampling("general options.sampling", options.sampling, {
    maxNewTokens: 256,
    temperature: 0,
  });
  const probes = options.questions?.map(probeOf) ?? generalProbes;
  const codingIds = probes.filter(({ kind }) => kind === "coding").map(({ id }) => id);
  const isCoding = ({ item }: CompletionRow): boolean => codingIds.includes(item);
  const items: readonly CompletionItem[] = probes.map(({ id, prompt }) => ({
    id,
    question: prompt,
    persona: null,
    prompt: { messages: [{ role: "user", content: prompt }] },
  }));
  const instructions = probes.length - codingIds.length;
  let provenance: Json = null;
  return defineEvaluation({
    name: "general",
    version: "general-1",
    needs: ["generate"],
    wants: ["tokenizer"],
    items(model) {
      provenance = {
        prompts: items.map(({ question }) => question),
        sampling: { ...sampling },
        example_prompt: renderItems(model, items, "general"),
      };
      return items;
    },
    provenance: () => provenance,
    measure: (model, asked, context) =>
      measureInBatches(asked, context, (some) =>
        sampleCompletions(model, some, { samples: 1, sampling, stripThinking: true }, context),
      ),
    prompts: (_, asked) => asked.map(({ prompt }) => prompt),
    async grade(rows: readonly CompletionRow[], { signal }): Promise<readonly GradedGeneralRow[]> {
      const graded: GradedGeneralRow[] = [];
      for (const row of rows) {
        signal.throwIfAborted();
        const probe = probes.find(({ id }) => id === row.item)!;
        const verdict =
          row.answer === null ? { score: 0, raw: "the thinking did not end" } : await probe.score(row.answer);
        graded.push({ ...row, ...verdict });
      }
      return graded;
    },
    answers: { ...completionFields, reply: "raw", grades: ["score"], flags: [truncatedFlag] },
    metrics: ({ mean, ratio }: MetricKit<GradedGeneralRow>) => {
      const weight = (row: GradedGeneralRow) => (isCoding(row) ? instructions : 1);
      const share = { unit: "share", range: [0, 1], higherIsBetter: true } as const;
      return {
        general: ratio((row) => [weight(row) * row.score, weight(row)], { ...share, primary: true }),
        coding: mean((row) => (isCoding(row) ? row.score : null), share),
        instructions: mean((row) => (isCoding(row) ? null : row.score), share),
      };
    },
    plainKeys: (_: Readonly<Record<string, MetricValue>>, rows: readonly GradedGeneralRow[]) => ({
      failures: Object.fromEntries(rows.flatMap(({ item, raw }) => (raw === null ? [] : [[item, raw]]))),
    }),
  });
}

/** Returns the general score divided by the baseline's; null if either is unknown or the baseline's is 0. */
export const capabilityRatio = (now: number | null, baseline: number | null): number | null =>
  now === null || baseline === null || baseline === 0 ? null : now / baseline;
