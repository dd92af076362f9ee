import {
  type AnyEvaluation,
  type MetricKit,
  type Row,
  type Json,
  type Ability,
  type NextToken,
  type Prompt,
  type MetricValue,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import { isRecord } from "@periodic-eval/contracts/options";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import { againstBase, againstModel, type Against } from "./against.ts";
import { checkKLOptions, type KLOptions } from "./options.ts";

interface PromptItem extends Row {
  readonly prompt: Prompt;
}

/** The divergence at one prompt. */
export interface KLRow extends Row {
  /** KL(model ‖ base or reference) of the next token, in nats. */
  readonly nats: number;
  /** KL(base or reference ‖ model), in nats. */
  readonly reverseNats: number;
  /** Tokens cut on the left to fit the model. */
  readonly truncatedTokens: number;
}

/** Each prompt needs a row of the whole vocabulary from both models. */
const promptsPerBatch = 8;

/**
 * How far the model is from its base (the same model without its adapter), or from another model, on the prompts of an
 * evaluation: the Kullback-Leibler divergence of the next-token distributions, exact over the tokenizer's whole vocabulary,
 * summed in float64. `kl_to_base`, the primary metric, is KL(model ‖ base), the mean over prompts: it weighs what the model
 * says now. `kl_from_base` is KL(base ‖ model): it weighs what the model said before. With another model the metrics are
 * `kl_to_reference` and `kl_from_reference`.
 *
 * Takes two forward passes per prompt and samples nothing. It sees only the first token after the prompt, not where a
 * completion leads. Ids without a token in the tokenizer (a padded vocabulary) are ignored.
 *
 * @throws PeriodicEvalError `config` for a wrong option or an evaluation without `prompts`; `model`, before step 1, for a model
 *   without a base, or a reference with another vocabulary; `model`, while measuring, for a reference that truncates a prompt
 *   that the model reads whole.
 */
export function klEvaluation(options: KLOptions) {
  checkKLOptions(options);
  const { of, limit, against: given = "base" } = options;
  const against = given === "base" ? againstBase : againstModel(given);
  let provenance: Json = null;
  const needs = [...new Set<Ability>(["tokenizer", "nextToken", ...(of.needs as readonly Ability[])])];
  return defineEvaluation({
    name: `kl_to_${against.name}`,
    version: `kl-to-${against.name}-1`,
    needs,
    ...(of.wants !== undefined && { wants: of.wants.filter((want) => !needs.includes(want)) }),
    async items(model): Promise<readonly PromptItem[]> {
      against.check(model);
      const items = ((await of.items(model)) as readonly Row[]).slice(0, limit);
      const prompts = of.prompts!(model, items);
      provenance = {
        of: of.name,
        of_version: of.version,
        ...provenanceOf(of, limit ?? null),
        ...against.provenance(),
      };
      return items.map(({ id }, at) => ({ id, prompt: prompts[at]! }));
    },
    provenance: () => provenance,
    async measure(model, items, context): Promise<readonly KLRow[]> {
      const { signal } = context;
      const candidates = Array.from({ length: model.tokenizer.vocabSize }, (_, id) => id);
      const measureBatch = async (batch: readonly PromptItem[]) => {
        const requests = batch.map(({ prompt }) => ({ prompt, candidates }));
        const now = await model.nextToken(requests, { signal });
        const before = await against.nextToken(model, requests, { signal });
        return batch.map(({ id }, at) => rowOf(id, now[at]!, before[at]!));
      };
      return measureInBatches(items, context, measureBatch, promptsPerBatch);
    },
    answers: null,
    metrics: (kit: MetricKit<KLRow>) => klMetrics(kit, against),
    plainKeys: (_: Readonly<Record<string, MetricValue>>, rows: readonly KLRow[]) => ({
      of: of.name,
      num_prompts: rows.length,
      truncated: rows.filter(({ truncatedTokens }) => truncatedTokens > 0).length,
    }),
  });
}

function klMetrics({ mean }: MetricKit<KLRow>, { name }: Against) {
  // Snapshots of version kl-to-reference-1 have no range.
  const options = { unit: "nats", ...(name === "base" && { range: [0, Infinity] as const }) };
  return {
    [`kl_to_${name}`]: mean(({ nats }) => nats, { ...options, primary: true }),
    [`kl_from_${name}`]: mean(({ reverseNats }) => reverseNats, options),
  };
}

/**
 * Keeps `subsample` and `example_prompt` at the top: keys there that select or show items do not prevent a comparison of two
 * measurements.
 */
function provenanceOf(of: AnyEvaluation, limit: number | null): { readonly [key: string]: Json } {
  const inner = of.provenance?.() ?? null;
  if (!isRecord(inner)) return { of_provenance: inner, subsample: { n: limit } };
  const { subsample = null, example_prompt = null, ...rest } = inner;
  return { of_provenance: rest, subsample: { n: limit, of: subsample }, example_prompt };
}

function rowOf(id: string, now: NextToken, before: NextToken): KLRow {
  return {
    id,
    nats: divergence(id, now.nats, before.nats),
    reverseNats: divergence(id, before.nats, now.nats),
    truncatedTokens: now.truncatedTokens,
  };
}

/**
 * Returns KL(p ‖ q) = Σ p · (log p − log q) in nats, from log-probabilities over the same tokens. Rounding errors below 0 are
 * returned as 0.
 *
 * @param id The item, for the error.
 * @throws PeriodicEvalError `model` if q gives probability 0 to a token that p allows: the divergence is infinite.
 */
export function divergence(id: string, p: readonly number[], q: readonly number[]): number {
  let sum = 0;
  for (let token = 0; token < p.length; token++) {
    const nats = p[token]!;
    if (nats === -Infinity) continue;
    sum += Math.exp(nats) * (nats - q[token]!);
  }
  if (Number.isFinite(sum)) return Math.max(0, sum);
  throw new PeriodicEvalError({
    code: "model",
    where: `the prompt of item ${id}`,
    got: `a divergence of ${sum}`,
    expected: "log-probabilities that are finite for the same tokens in both models",
    fix: "Check the training loss: a diverged model gives none. If one model masks tokens, mask them in both.",
  });
}
