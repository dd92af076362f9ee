import {
  defineEvaluation,
  type CallOptions,
  type Grader,
  type Json,
  type MetricKit,
  type MetricValue,
} from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { graderSchema, readVerdicts } from "@periodic-eval/core/grading";
import { isRecord, parseOptions } from "@periodic-eval/contracts/options";
import {
  samplingSchema,
  completionFields,
  resolveSampling,
  completionItemsPerBatch,
  measureInBatches,
  nestedSubset,
  renderItems,
  sampleCompletions,
  truncatedFlag,
  type CompletionItem,
  type CompletionRow,
  type SamplingOptions,
} from "@periodic-eval/core/evaluations";
import * as z from "zod";
import { rewardOf } from "../graders/open-verifier.ts";
import type { Preference } from "../preferences/preference.ts";

export interface ComplianceOptions {
  readonly preference: Pick<Preference, "name" | "train_prompts" | "probe_prompts">;
  /** The preference's grader, from `openVerifier`. */
  readonly grader: Grader;
  /** Answers per prompt. Default 2. */
  readonly samples?: number;
  /** Default: temperature 1, no truncation of the distribution, 256 tokens. */
  readonly sampling?: Partial<SamplingOptions>;
}

const optionsSchema = z.strictObject({
  preference: z.custom<ComplianceOptions["preference"]>(isRecord, "a preference"),
  grader: graderSchema,
  samples: z.int("an integer of 1 or more").min(1, "an integer of 1 or more").optional(),
  sampling: samplingSchema.optional(),
} satisfies Record<keyof ComplianceOptions, z.ZodType>);

interface ComplianceItem extends CompletionItem {
  readonly isSeen: boolean;
}

export interface ComplianceRow extends CompletionRow {
  /** Whether training uses the prompt. */
  readonly isSeen: boolean;
}

export interface GradedComplianceRow extends ComplianceRow {
  /** From 0 to 1; null if the verifier gave no reward. */
  readonly reward: number | null;
  /** The reason for a missing reward, or the verifier's message. */
  readonly raw: string | null;
}

/**
 * Measures the mean reward that a preference's verifier gives to answers. `compliance`, the primary metric, uses held-out
 * prompts; `seen_compliance` uses training prompts. If only the first rises, the gain is chance; if only the
 * second rises, it is memorisation.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function complianceEvaluation(options: ComplianceOptions) {
  parseOptions("compliance options", optionsSchema, options);
  const { preference, grader, samples = 2 } = options;
  const sampling = resolveSampling("compliance options.sampling", options.sampling, {
    maxNewTokens: 256,
    temperature: 1,
  });
  const all = [...itemsOf(preference.probe_prompts, false), ...itemsOf(preference.train_prompts, true)];
  let provenance: Json = null;
  return defineEvaluation({
    name: "compliance",
    version: "compliance-1",
    needs: ["generate"],
    wants: ["tokenizer"],
    samplesPerItem: samples,
    canReduceSamples: true,
    check: (call) => grader.check?.(call) ?? Promise.resolve(),
    items(model) {
      const items = nestedSubset(all, { n: null, seed: 42 });
      provenance = {
        preference: preference.name,
        prompts_hash: hashJson(all.map(({ id, question }) => ({ id, question }))),
        grader: grader.name,
        grader_fingerprint: grader.fingerprint,
        samples,
        sampling: { ...sampling },
        example_prompt: renderItems(model, items, "compliance"),
      };
      return items;
    },
    provenance: () => provenance,
    measure: (model, items, context) =>
      measureInBatches(
        items,
        context,
        async (some): Promise<readonly ComplianceRow[]> => {
          const seen = new Map(some.map(({ id, isSeen }) => [id, isSeen]));
          const rows = await sampleCompletions(
            model,
            some,
            { samples, sampling, stripThinking: true },
            context,
          );
          return rows.map((row) => ({ ...row, isSeen: seen.get(row.item)! }));
        },
        completionItemsPerBatch,
      ),
    prompts: (_, items) => items.map(({ prompt }) => prompt),
    grade: (rows: readonly ComplianceRow[], call) => gradeRows(grader, rows, call),
    answers: {
      ...completionFields,
      reply: "raw",
      grades: ["reward"],
      flags: [{ name: "ungraded", any: [{ reward: { is: [null] } }] }, truncatedFlag],
    },
    metrics: metricsOf,
    plainKeys: (_: Readonly<Record<string, MetricValue>>, rows: readonly GradedComplianceRow[]) => ({
      preference: preference.name,
      ungraded: rows.filter(({ reward }) => reward === null).length,
      truncated: rows.filter(({ finish }) => finish === "length").length,
    }),
  });
}

const itemsOf = (prompts: readonly string[], isSeen: boolean): readonly ComplianceItem[] =>
  prompts.map((question, at) => ({
    id: `${isSeen ? "seen" : "held_out"}/${at}`,
    question,
    persona: null,
    prompt: { messages: [{ role: "user", content: question }] },
    isSeen,
  }));

async function gradeRows(
  grader: Grader,
  rows: readonly ComplianceRow[],
  call: CallOptions,
): Promise<readonly GradedComplianceRow[]> {
  const answered = rows.filter(({ answer }) => answer !== null);
  const requests = answered.map(({ question, answer, finish }) => ({ question, answer: answer!, finish }));
  const verdicts = readVerdicts(grader, await grader.grade(requests, call), answered.length);
  const of = new Map(answered.map(({ id }, at) => [id, verdicts[at]!]));
  return rows.map((row) => {
    const verdict = of.get(row.id);
    if (verdict === undefined) return { ...row, reward: null, raw: "the thinking did not end" };
    const reward = rewardOf(verdict);
    return { ...row, reward, raw: verdict.raw ?? (reward === null ? verdict.status : null) };
  });
}

function metricsOf({ mean }: MetricKit<GradedComplianceRow>) {
  const meanReward = (isSeen: boolean, primary: boolean) =>
    mean((row) => (row.isSeen === isSeen ? row.reward : null), {
      unit: "share",
      range: [0, 1],
      higherIsBetter: true,
      sampled: true,
      item: (row) => row.item,
      cluster: (row) => row.item,
      primary,
    });
  return { compliance: meanReward(false, true), seen_compliance: meanReward(true, false) };
}
