import {
  defineEvaluation,
  PeriodicEvalError,
  type Grader,
  type Json,
  type MetricKit,
  type MetricValue,
} from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { checkKeys, isCount, quoteValue } from "@periodic-eval/core/internal";
import {
  resolveSampling,
  completionItemsPerBatch,
  measureInBatches,
  nestedSubset,
  renderItems,
  sampleCompletions,
  type CompletionItem,
  type CompletionRow,
  type SamplingOptions,
} from "@periodic-eval/core/evaluations";
import { rewardOf } from "../graders/open-verifier.ts";
import type { Preference } from "../preferences/preference.ts";

export interface ComplianceOptions {
  readonly preference: Pick<Preference, "name" | "train_prompts" | "probe_prompts">;
  /** As `openVerifier` gives it. */
  readonly grader: Grader;
  /** Answers to each prompt; default 2. */
  readonly samples?: number;
  /** Default temperature 1, no truncation of the distribution, 256 tokens. */
  readonly sampling?: Partial<SamplingOptions>;
}

interface ComplianceItem extends CompletionItem {
  readonly isSeen: boolean;
}

export interface ComplianceRow extends CompletionRow {
  /** Whether its prompt is trained on. */
  readonly isSeen: boolean;
}

export interface GradedComplianceRow extends ComplianceRow {
  /** From 0 to 1; null where the verifier could not say, which is unknown and not 0. */
  readonly reward: number | null;
  /** Why there is no reward, or what the verifier said. */
  readonly raw: string | null;
}

/**
 * Whether answers are as a preference wants them: its verifier's mean reward. `compliance`, the primary metric, is that on
 * held-out prompts, `seen_compliance` that on those that are trained on: the first without the second is luck, the second
 * without the first is no more than memory.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function complianceEvaluation(options: ComplianceOptions) {
  checkKeys("compliance", options, ["preference", "grader", "samples", "sampling"]);
  const { preference, grader, samples = 2 } = options;
  if (!isCount(samples, 1))
    throw new PeriodicEvalError({
      code: "config",
      where: "compliance.samples",
      got: quoteValue(samples),
      expected: "a whole number of 1 or more",
      fix: "Leave it out for 2.",
    });
  const sampling = resolveSampling("compliance.sampling", options.sampling, {
    maxNewTokens: 256,
    temperature: 1,
  });
  const itemsOf = (prompts: readonly string[], isSeen: boolean): readonly ComplianceItem[] =>
    prompts.map((question, at) => ({
      id: `${isSeen ? "seen" : "held_out"}/${at}`,
      question,
      persona: null,
      prompt: { messages: [{ role: "user", content: question }] },
      isSeen,
    }));
  const all = [...itemsOf(preference.probe_prompts, false), ...itemsOf(preference.train_prompts, true)];
  let provenance: Json = null;
  return defineEvaluation({
    name: "compliance",
    version: "compliance-1",
    needs: ["generate"],
    wants: ["tokenizer"],
    samplesPerItem: samples,
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
    async grade(rows: readonly ComplianceRow[], call): Promise<readonly GradedComplianceRow[]> {
      const answered = rows.filter(({ answer }) => answer !== null);
      const requests = answered.map(({ question, answer }) => ({ question, answer: answer! }));
      const verdicts = await grader.grade(requests, call);
      const of = new Map(answered.map(({ id }, at) => [id, verdicts[at]!]));
      return rows.map((row) => {
        const verdict = of.get(row.id);
        if (verdict === undefined) return { ...row, reward: null, raw: "the thinking did not end" };
        const reward = rewardOf(verdict);
        return { ...row, reward, raw: verdict.raw ?? (reward === null ? verdict.status : null) };
      });
    },
    metrics: ({ mean }: MetricKit<GradedComplianceRow>) => {
      const of = (isSeen: boolean, primary: boolean) =>
        mean((row) => (row.isSeen === isSeen ? row.reward : null), {
          unit: "share",
          range: [0, 1],
          higherIsBetter: true,
          sampled: true,
          item: (row) => row.item,
          cluster: (row) => row.item,
          primary,
        });
      return { compliance: of(false, true), seen_compliance: of(true, false) };
    },
    plainKeys: (_: Readonly<Record<string, MetricValue>>, rows: readonly GradedComplianceRow[]) => ({
      preference: preference.name,
      ungraded: rows.filter(({ reward }) => reward === null).length,
      truncated: rows.filter(({ finish }) => finish === "length").length,
    }),
  });
}
