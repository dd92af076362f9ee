import type {
  AnswerFields,
  BulkTokenizer,
  Completion,
  Json,
  Metric,
  MetricKit,
  Prompt,
  Row,
} from "@periodic-eval/core";
import { configError, positiveInteger } from "@periodic-eval/contracts/options";
import { resolveSampling, measureInBatches, requestsFor } from "@periodic-eval/core/evaluations";
import * as z from "zod";
import { familyOf } from "./evaluate.ts";
import {
  documentFunction,
  familyParts,
  promptOf,
  type PromptInput,
  type Family,
  type FamilyItem,
  type FamilyOptions,
  type FamilyRow,
  sequenceOf,
} from "./family.ts";
import {
  firstText,
  fitPrompts,
  promptBudget,
  type TokenizingModel,
  type FittedPrompt,
  type UnaskedPrompt,
} from "./fit-prompt.ts";
import { applyHooks, checkHooks, hooksMetric, hooksShape, type Hooks, type Scored } from "./hooks.ts";

export interface RolloutItem<D> extends FamilyItem<D> {
  readonly prompt: Prompt;
}

/** One completion. Its id is `<document id>#<sample>`, with samples counted from 0. */
export interface RolloutRow extends FamilyRow {
  readonly sample: number;
  /** `overflow`: the prompt leaves no room for `maxNewTokens`; `template_failure`: it could not be rendered. Both were skipped. */
  readonly status: "generated" | "overflow" | "template_failure";
  /** Null if the prompt was skipped. */
  readonly text: string | null;
  /** `length`: the completion was cut off at `maxNewTokens` or the model's context length. */
  readonly finish: "stop" | "length" | null;
  /** Null if the model has no tokenizer. */
  readonly promptTokens: number | null;
  /** Tokens of the prompt cut on the left, with `overflow: "left"`. */
  readonly truncatedTokens: number;
  /** Why the prompt was skipped. */
  readonly reason?: string;
}

/** A completion with the results of `clean` and of `check` or `score`. */
export interface ScoredRolloutRow<S extends Json = Json> extends RolloutRow, Scored<S> {}

interface RolloutBase<D extends Row> extends FamilyOptions<D> {
  /** Returns the prompt: plain text, a chat, or token ids. */
  readonly prompt: (document: D) => PromptInput;
  /** The most tokens of a completion. A prompt may have the model's context length minus these. */
  readonly maxNewTokens: number;
  /** Default 0: greedy. */
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  /** The completion ends before the first of these strings. */
  readonly stop?: readonly string[];
  /** Completions per prompt, each a row; default 1. */
  readonly samplesPerPrompt?: number;
  /**
   * Handling of a prompt that is too long. `report` (default) skips it and records that in its rows; `left` cuts it on the
   * left, as lm-evaluation-harness does, and records how many tokens were cut.
   */
  readonly overflow?: "report" | "left";
}

export type RolloutOptions<D extends Row, S extends Json = boolean> = RolloutBase<D> & {
  /** Replaces the single metric `accuracy` (with `check`) or `score` (with `score`). */
  readonly metrics?: (
    kit: MetricKit<ScoredRolloutRow<S>>,
  ) => Readonly<Record<string, Metric<ScoredRolloutRow<S>>>>;
} & Hooks<D, S>;

/** For errors. */
const functionName = "rolloutEvaluation";

/** Documents per call of `measureInBatches`. */
const documentsPerCall = 16;

const ownShape = {
  prompt: documentFunction,
  maxNewTokens: positiveInteger.meta({ fix: "Set the most tokens that a completion may have." }),
  // `resolveSampling` checks these four.
  temperature: z.unknown().optional(),
  topP: z.unknown().optional(),
  topK: z.unknown().optional(),
  stop: z.unknown().optional(),
  samplesPerPrompt: positiveInteger.optional(),
  overflow: z.enum(["report", "left"]).optional(),
  ...hooksShape,
} satisfies Record<Exclude<keyof RolloutOptions<Row, Json>, keyof FamilyOptions<Row>>, z.ZodType>;

/**
 * Generates completions and checks them: generate → `clean` → `check` or `score`. Rows keep the completions; cleaning and
 * scoring are the evaluation's `grade`, which runs beside training without the model. If prompts are sampled, measurements are
 * compared within each document.
 *
 *     rolloutEvaluation({
 *       name: "sums",
 *       documents: [{ id: "1", question: "1+1=", answer: "2" }],
 *       prompt: ({ question }) => question,
 *       maxNewTokens: 4,
 *       clean: (text) => text.trim(),
 *       check: ({ answer }, text) => text === answer,
 *     });
 *
 * @throws PeriodicEvalError `config` for a wrong option, and before step 1 for a model whose context is not longer than
 *   `maxNewTokens`; `model` if no prompt fits.
 */
export function rolloutEvaluation<D extends Row, S extends Json = boolean>(
  options: RolloutOptions<D, S>,
): Family<D, RolloutItem<D>, RolloutRow, "generate", ScoredRolloutRow<S>> {
  return rolloutFamily(functionName, options);
}

/** @param where The function that received the options, for errors. */
function rolloutFamily<D extends Row, S extends Json>(
  where: string,
  options: RolloutOptions<D, S>,
): Family<D, RolloutItem<D>, RolloutRow, "generate", ScoredRolloutRow<S>> {
  const parts = familyParts(where, options, ownShape);
  const { maxNewTokens, temperature = 0, topP, topK, stop } = options;
  const { samplesPerPrompt: samples = 1, overflow = "report" } = options;
  if (samples > 1 && temperature === 0)
    throw configError({
      where: `${where} options`,
      path: ["samplesPerPrompt"],
      got: `${samples} at temperature 0`,
      expected: "1 at temperature 0",
      fix: "Raise the temperature: greedy completions of a prompt are all equal.",
    });
  checkHooks(where, options);
  const pairs = Object.entries({ temperature, topP, topK, stop }).filter(([, value]) => value !== undefined);
  const defaults = { maxNewTokens, temperature };
  const sampling = resolveSampling(`${where} options`, Object.fromEntries(pairs), defaults);
  return familyOf(parts.common, {
    withSampling: (caller, other) => rolloutFamily(caller, { ...options, ...other }),
    needs: ["generate"],
    wants: ["tokenizer"],
    samplesPerItem: samples,
    async items(model) {
      const items = (await parts.items()).map((item) => {
        return { ...item, prompt: promptOf(options.prompt(item.document)) };
      });
      const prompts = items.map(({ prompt }) => prompt);
      const budget = await promptBudget(parts.name, model, maxNewTokens, prompts);
      const example = await firstText(parts.name, model, items, { budget, overflow });
      const how = { sampling: { ...sampling } as Json, samples, overflow, prompt_budget: budget };
      parts.describe(how, example);
      return items;
    },
    prompts: (_, items) => items.map(({ prompt }) => prompt),
    async measure(model, items, context, onSequence) {
      const fitting = { budget: await promptBudget(parts.name, model, maxNewTokens), overflow };
      const asked = items.map(({ prompt }) => prompt);
      const all = await fitPrompts(model, asked, fitting);
      const fittedOf = new Map(items.map((item, at) => [item, all[at]!]));
      const ask = async (some: readonly RolloutItem<D>[]) => {
        const ready = some.map((item) => ({
          item: item.id,
          groups: item.groups,
          fitted: fittedOf.get(item)!,
        }));
        const prompts = ready.flatMap(({ fitted }) => ("reason" in fitted ? [] : [fitted.prompt]));
        const requests = requestsFor(prompts, { first: 0, end: samples }, sampling, context.seed);
        const completions = await model.generate(requests, { signal: context.signal });
        const ids = onSequence && (await completionIds((model as TokenizingModel).tokenizer!, completions));
        return rolloutRows(ready, samples, completions, (row, fitted, at) =>
          onSequence?.(row, sequenceOf(fitted.ids!, ids![at]!)),
        );
      };
      return measureInBatches(items, context, ask, documentsPerCall);
    },
    grade: (rows, { signal }) =>
      applyHooks(
        rows,
        {
          where: functionName,
          task: parts.name,
          hooks: options,
          documentOf: parts.documentOf,
          textOf: ({ text }) => text,
        },
        signal,
      ),
    answers: answerFields,
    metrics: (kit) => {
      const item = ({ item: id }: FamilyRow) => id;
      const drawn = temperature === 0 ? {} : { sampled: true, item, ...(samples > 1 && { cluster: item }) };
      return parts.metrics(kit, drawn, options.metrics ?? hooksMetric(functionName, options));
    },
    plainKeys: (_, rows) => countsOf(rows),
  });
}

/** Returns `samples` rows for each prompt, in the order of the completions; prompts that were not asked have none. */
function rolloutRows(
  prompts: readonly (Pick<RolloutRow, "item" | "groups"> & {
    readonly fitted: FittedPrompt | UnaskedPrompt;
  })[],
  samples: number,
  completions: readonly Completion[],
  onRow: (id: string, fitted: FittedPrompt, at: number) => void,
): readonly RolloutRow[] {
  const written = completions.entries();
  return prompts.flatMap(({ item, groups, fitted }) =>
    Array.from({ length: samples }, (_, sample): RolloutRow => {
      const row = { id: `${item}#${sample}`, item, groups, sample };
      if ("reason" in fitted) return { ...row, ...unasked, ...fitted };
      const [at, { text, finish }] = written.next().value!;
      onRow(row.id, fitted, at);
      const { truncatedTokens } = fitted;
      const promptTokens = fitted.ids?.length ?? null;
      return { ...row, status: "generated", text, finish, promptTokens, truncatedTokens };
    }),
  );
}

/** Returns the ids of completions; encodes those of an engine that returns none. */
async function completionIds(
  tokenizer: BulkTokenizer,
  completions: readonly Completion[],
): Promise<readonly (readonly number[])[]> {
  const texts = completions.flatMap(({ ids, text }) => (ids === null ? [text] : []));
  const encoded = texts.length === 0 ? [] : await tokenizer.encode(texts, { specialTokens: false });
  const next = encoded.values();
  return completions.map(({ ids }) => ids ?? next.next().value!);
}

function countsOf(rows: readonly ScoredRolloutRow[]) {
  const count = (is: (row: ScoredRolloutRow) => boolean) => rows.filter(is).length;
  return {
    num_samples: count(({ status }) => status === "generated"),
    scored: count(({ score }) => score !== null),
    overflows: count(({ status }) => status === "overflow"),
    template_failures: count(({ status }) => status === "template_failure"),
    truncated: count(({ truncatedTokens }) => truncatedTokens > 0),
    at_max_new_tokens: count(({ finish }) => finish === "length"),
  };
}

const unasked = { text: null, finish: null, truncatedTokens: 0 };

/** The fields of a row that the page shows. */
const answerFields: AnswerFields = {
  answer: "text",
  reply: "reason",
  grades: ["score"],
  flags: [
    { name: "wrong", any: [{ score: { is: [false, 0] } }] },
    { name: "ungraded", any: [{ score: { is: [null] } }] },
    { name: "truncated", any: [{ finish: { is: ["length"] } }, { truncatedTokens: { above: 0 } }] },
  ],
};
