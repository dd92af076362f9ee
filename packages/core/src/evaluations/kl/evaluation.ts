import * as z from "zod";
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
  type EvaluableModel,
  type Abilities,
  type BulkTokenizer,
  type CallOptions,
  type NextTokenRequest,
  type ModelWith,
  hashJson,
} from "@periodic-eval/contracts";
import {
  isRecord,
  configError,
  parseOptions,
  positiveInteger,
  modelError,
} from "@periodic-eval/contracts/options";
import { renderAll } from "../../model/encode-pair.ts";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";

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
  const { of, limit, against: reference = "base" } = options;
  const against = reference === "base" ? againstBase : againstModel(reference);
  let provenance: Json = null;
  const needs = [...new Set<Ability>(["tokenizer", "nextToken", ...(of.needs as readonly Ability[])])];
  return defineEvaluation({
    name: `kl_to_${against.name}`,
    version: `kl-to-${against.name}-1`,
    needs,
    ...(of.wants !== undefined && { wants: of.wants.filter((want) => !needs.includes(want)) }),
    async items(model): Promise<readonly PromptItem[]> {
      await against.check(model);
      const items = ((await of.items(model)) as readonly Row[]).slice(0, limit);
      const prompts = await of.prompts!(model, items);
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
      const prompts = items.map(({ prompt }) => prompt);
      const read = await against.promptsFor(model, prompts);
      const readBy = new Map(prompts.map((prompt, at) => [prompt, read[at]!]));
      const measureBatch = async (batch: readonly PromptItem[]) => {
        const requests = batch.map(({ prompt }) => ({ prompt, candidates }));
        const now = await model.nextToken(requests, { signal });
        const beforeRequests = batch.map(({ prompt }) => ({ prompt: readBy.get(prompt)!, candidates }));
        const before = await against.nextToken(model, beforeRequests, { signal });
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
  throw modelError(
    `the prompt of item ${id}`,
    `a divergence of ${sum}`,
    "log-probabilities that are finite for the same tokens in both models",
    "Check the training loss: a diverged model gives none. If one model masks tokens, mask them in both.",
  );
}

export interface KLOptions {
  /** The evaluation whose prompts are used. It must define `prompts`. */
  readonly of: AnyEvaluation;
  /**
   * The distribution to compare with. Default `"base"`: the same model without its adapter. Or any model with the same
   * vocabulary, such as an earlier checkpoint; the caller disposes it.
   */
  readonly against?: "base" | EvaluableModel;
  /** Uses the prompts of the first `limit` items only. Default: all. */
  readonly limit?: number;
}

const evaluationFix = "Add `prompts: (model, items) => […]` to the evaluation, one prompt per item.";

export const klShape = {
  of: z.custom<AnyEvaluation>(isRecord, "an evaluation with `prompts`").meta({ fix: evaluationFix }),
  against: z
    .custom<"base" | EvaluableModel>(
      (value) => value === "base" || (isRecord(value) && isRecord(value["identity"])),
      '"base" or a model',
    )
    .optional(),
  limit: positiveInteger.meta({ fix: "Remove `limit` to use all prompts." }).optional(),
} satisfies Record<keyof KLOptions, z.ZodType>;

function checkKLOptions(options: KLOptions): void {
  const where = "klEvaluation options";
  parseOptions(where, z.strictObject(klShape), options);
  if (options.of.prompts !== undefined) return;
  throw configError({
    where,
    path: ["of"],
    got: `the evaluation "${options.of.name}", which has no \`prompts\``,
    expected: "an evaluation with `prompts`",
    fix: evaluationFix,
  });
}

type MeasuredModel = ModelWith<"tokenizer" | "nextToken">;

/** The distribution that the measured model is compared with. */
interface Against {
  /** Names the evaluation and its metrics: `kl_to_base`, `kl_from_reference`. */
  readonly name: "base" | "reference";
  /** Returns the part of the provenance that describes the distribution, after `check`. */
  provenance(): { readonly [key: string]: Json };
  /** @throws PeriodicEvalError `model`, before step 1, for a model that cannot be compared. */
  check(model: MeasuredModel): void | Promise<void>;
  /** Returns the prompts as the reference reads them, for all calls of `nextToken`. */
  promptsFor(model: MeasuredModel, prompts: readonly Prompt[]): Promise<readonly Prompt[]>;
  nextToken(
    model: MeasuredModel,
    requests: readonly NextTokenRequest[],
    options: CallOptions,
  ): Promise<readonly NextToken[]>;
}

const againstBase: Against = {
  name: "base",
  provenance: () => ({}),
  check: (model) => void baseOf(model),
  promptsFor: async (_, prompts) => prompts,
  nextToken: (model, requests, options) => baseOf(model).nextToken(requests, options),
};

function baseOf({ base, identity }: MeasuredModel): Pick<Abilities, "nextToken"> {
  if (base?.nextToken !== undefined) return base as Pick<Abilities, "nextToken">;
  throw modelError(
    "klEvaluation",
    `the model "${identity.name}", which has no base${base === undefined ? "" : " with the ability nextToken"}`,
    "a model that can run without its adapter",
    'Train an adapter (LoRA) instead of all weights, and do not measure on: "base".',
  );
}

/**
 * Another model. Prompts are rendered by the measured model's template, and both models read the same ids.
 *
 * @throws PeriodicEvalError `model` for a reference without `tokenizer` or `nextToken`.
 */
function againstModel(reference: EvaluableModel): Against {
  const { tokenizer, nextToken, identity } = reference;
  if (tokenizer === undefined || nextToken === undefined)
    throw wrongReference(
      `the model "${identity.name}", which has no ${nextToken === undefined ? "nextToken" : "tokenizer"}`,
      "a model with the abilities tokenizer and nextToken",
      "Use a model in memory, or a server that returns the log-probabilities of given tokens.",
    );
  return {
    name: "reference",
    provenance() {
      // Read late: a model in memory takes its engine from the backend, and a reference may still load its weights.
      const { name, engine, dtype, weights, adapter, details = null } = reference.identity;
      const shown = { name, engine, dtype, weights, adapter, details, tokenizer: tokenizer.fingerprint };
      return { reference: shown, reference_hash: hashJson(shown) };
    },
    check: (model) => checkVocabulary(model.tokenizer, tokenizer, identity.name),
    /** Each engine has its own token for an empty prompt, so an empty prompt stays as it is. */
    async promptsFor(model, prompts) {
      const rendered = await renderAll(model.tokenizer, prompts);
      return rendered.map(({ ids }, at) => (ids.length > 0 ? { ids } : prompts[at]!));
    },
    async nextToken(model, requests, options) {
      const answers = await reference.nextToken!(requests, options);
      answers.forEach(({ truncatedTokens }, at) => {
        const { prompt } = requests[at]!;
        const length = "ids" in prompt ? prompt.ids.length : 0;
        if (truncatedTokens > 0 && (model.contextLength ?? Infinity) > length - truncatedTokens)
          throw tooShort(reference, length);
      });
      return answers;
    },
  };
}

/** Requires the same tokens. Chat templates may differ: both models read the same ids. */
async function checkVocabulary(measured: BulkTokenizer, other: BulkTokenizer, name: string): Promise<void> {
  if (measured.fingerprint === other.fingerprint) return;
  const fix = "Compare models with the same vocabulary: a divergence is a sum over the same tokens.";
  const refuse = (got: string, expected: string) =>
    wrongReference(`${got} in "${name}"`, `${expected}, as in the measured model`, fix);
  if (measured.vocabSize !== other.vocabSize)
    throw refuse(`a vocabulary of ${other.vocabSize} tokens`, String(measured.vocabSize));
  const rows = Array.from({ length: measured.vocabSize }, (_, id) => [id]);
  const [expected, got] = await Promise.all([measured.decode(rows), other.decode(rows)]);
  const id = expected.findIndex((text, at) => text !== got[at]);
  if (id >= 0) throw refuse(`the token ${id} as ${JSON.stringify(got[id])}`, JSON.stringify(expected[id]));
}

const tooShort = ({ identity, contextLength }: EvaluableModel, length: number) =>
  wrongReference(
    `a prompt of ${length} tokens, of which "${identity.name}" reads the last ${contextLength ?? "few"}`,
    "a prompt that both models read to the same extent",
    "Choose shorter prompts, or fewer examples before them.",
  );

const wrongReference = (got: string, expected: string, fix: string) =>
  new PeriodicEvalError({
    code: "model",
    where: "klEvaluation options.against",
    path: ["against"],
    got,
    expected,
    fix,
  });
