import { checkKeys } from "../../internal/check-keys.ts";
import { quoteValue } from "../../internal/quote-value.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { defineEvaluation } from "../kit/define.ts";
import type { AnyEvaluation, MetricKit, Row } from "../../contracts/evaluation.ts";
import { isCount } from "../../internal/is-count.ts";
import type { Json } from "../../contracts/json.ts";
import type { Abilities, Ability, NextToken, Prompt, ModelWith } from "../../contracts/model.ts";
import type { MetricValue } from "../../contracts/snapshot.ts";
import { inCalls } from "../prompting/in-calls.ts";

export interface KLToBaseOptions {
  /** The evaluation whose prompts are looked at: one that tells them (`prompts`). */
  readonly of: AnyEvaluation;
  /** Only the prompts of its first so many items; default of all. */
  readonly limit?: number;
}

interface PromptItem extends Row {
  readonly prompt: Prompt;
}

/** One prompt. */
export interface KLRow extends Row {
  /** KL(model ‖ base) of the next token, in nats. */
  readonly nats: number;
  /** KL(base ‖ model), in nats. */
  readonly reverseNats: number;
  /** Tokens cut on the left to fit the model. */
  readonly truncatedTokens: number;
}

/** Prompts a call: a row of the vocabulary each, of both models. */
const promptsPerCall = 8;

/**
 * How far training has moved the model from its base (the same model with its adapter off), on the prompts of another
 * evaluation: the Kullback-Leibler divergence of the distributions of the next token, exact over the tokenizer's whole
 * vocabulary, summed in float64. `kl_to_base`, the primary metric, is KL(model ‖ base), the mean over prompts, which
 * weighs what the model now says; `kl_from_base` is KL(base ‖ model), which weighs what it used to say. Two forward
 * passes a prompt and nothing drawn. The first token after the prompt only: what a completion becomes later is not seen.
 * Ids that the tokenizer has no token for (a padded vocabulary) are left out.
 *
 * @throws PeriodicEvalError `config` for an evaluation that does not tell its prompts; `model`, before step 1, for a model
 *   without a base.
 */
export function klToBase(options: KLToBaseOptions) {
  checkKeys("klToBase", options, ["of", "limit"]);
  const { of, limit } = options;
  const prompts = (of as AnyEvaluation | undefined)?.prompts;
  if (prompts === undefined) {
    throw new PeriodicEvalError({
      code: "config",
      where: "klToBase.of",
      got: `the evaluation "${(of as AnyEvaluation | undefined)?.name}", which does not tell its prompts`,
      expected: "an evaluation with `prompts`",
      fix: "Add `prompts: (model, items) => […]` to it, one an item.",
    });
  }
  if (limit !== undefined && !isCount(limit, 1)) {
    throw new PeriodicEvalError({
      code: "config",
      where: "klToBase.limit",
      got: quoteValue(limit),
      expected: "a whole number of 1 or more",
      fix: "Leave it out for all prompts.",
    });
  }
  let provenance: Json = null;
  const needs = [...new Set<Ability>(["tokenizer", "nextToken", ...(of.needs as readonly Ability[])])];
  return defineEvaluation({
    name: "kl_to_base",
    version: "kl-to-base-1",
    needs,
    ...(of.wants !== undefined && { wants: of.wants.filter((want) => !needs.includes(want)) }),
    async items(model): Promise<readonly PromptItem[]> {
      baseOf(model);
      const items = ((await of.items(model)) as readonly Row[]).slice(0, limit);
      const asked = prompts.call(of, model, items);
      provenance = { of: of.name, of_version: of.version, ...provenanceOf(of, limit ?? null) };
      return items.map(({ id }, at) => ({ id, prompt: asked[at]! }));
    },
    provenance: () => provenance,
    async measure(model, items, context): Promise<readonly KLRow[]> {
      const { signal } = context;
      const base = baseOf(model);
      const candidates = Array.from({ length: model.tokenizer.vocabSize }, (_, id) => id);
      const ask = async (some: readonly PromptItem[]) => {
        const requests = some.map(({ prompt }) => ({ prompt, candidates }));
        const now = await model.nextToken(requests, { signal });
        const before = await base.nextToken(requests, { signal });
        return some.map(({ id }, at) => rowOf(id, now[at]!, before[at]!));
      };
      return inCalls(items, context, ask, promptsPerCall);
    },
    metrics: ({ mean }: MetricKit<KLRow>) => ({
      kl_to_base: mean(({ nats }) => nats, { unit: "nats", range: [0, Infinity], primary: true }),
      kl_from_base: mean(({ reverseNats }) => reverseNats, { unit: "nats", range: [0, Infinity] }),
    }),
    plainKeys: (_: Readonly<Record<string, MetricValue>>, rows: readonly KLRow[]) => ({
      of: of.name,
      num_prompts: rows.length,
      truncated: rows.filter(({ truncatedTokens }) => truncatedTokens > 0).length,
    }),
  });
}

/** What chooses or shows items stands at the top, where it does not keep two looks from being compared. */
function provenanceOf(of: AnyEvaluation, limit: number | null): { readonly [key: string]: Json } {
  const how = of.provenance?.() ?? null;
  if (typeof how !== "object" || how === null || Array.isArray(how))
    return { of_provenance: how, subsample: { n: limit } };
  const { subsample = null, example_prompt = null, ...rest } = how as { readonly [key: string]: Json };
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
 * Σ p · (log p − log q) over log-probabilities, in nats. Rounding can take it below 0, where none is.
 *
 * @throws PeriodicEvalError `model` where q rules out what p allows: the divergence is infinite.
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
    expected: "log-probabilities of model and base that are finite for the same tokens",
    fix: "Look at the loss: a model that diverged has none. Where one of the two masks tokens, mask them in both.",
  });
}

function baseOf({ base, identity }: ModelWith<"nextToken">): Pick<Abilities, "nextToken"> {
  if (base?.nextToken !== undefined) return base as Pick<Abilities, "nextToken">;
  throw new PeriodicEvalError({
    code: "model",
    where: "klToBase",
    got: `the model "${identity.name}", which has no base${base === undefined ? "" : " that tells next tokens"}`,
    expected: "a model that can be seen without its adapter",
    fix: 'Train an adapter (LoRA) rather than all weights; and do not measure on: "base".',
  });
}
