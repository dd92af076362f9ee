import {
  klEvaluation,
  type AnyEvaluation,
  type Awaitable,
  type EvaluationRegistry,
  type Grader,
  type SourceOption,
} from "@periodic-eval/core";
import {
  atOption,
  camelCaseKeys,
  fromWritten,
  optionsAt,
  yamlOption,
  parseOptions,
  positiveInteger,
  integerFromZero,
  filledString,
} from "@periodic-eval/contracts/options";
import { kindOf } from "@periodic-eval/core/config";
import { importJudgeOpener } from "@periodic-eval/core/grading";
import * as z from "zod";
import { isAnswersFile } from "./entry-paths.ts";
import { pairOptions, winRate, type WinRateOptions } from "./win-rate.ts";
import { promptsEvaluation, readAnswers, readPrompts, type PromptChoice } from "./prompt-file.ts";
import {
  installedEngine,
  notInstalled,
  sharedReference,
  type Reference,
  type ReferenceEngine,
} from "./reference-model.ts";

/** Opens a judge by name; null for the name in JUDGE_MODEL. The options ask it for the scores `first` and `second`. */
export type OpenPairJudge = (
  spec: string | null,
  options: ReturnType<typeof pairOptions> & { readonly maxCalls?: number },
) => Awaitable<Grader>;

export interface ComparisonOptions {
  /** Default: `openJudge` of @periodic-eval/remote, and `openLocalJudge` of @periodic-eval/models for a local judge. */
  readonly openJudge?: OpenPairJudge;
  /** Opens reference models. Default: @periodic-eval/models. */
  readonly engine?: ReferenceEngine;
}

const source = "a file of prompts, or hf:owner/dataset";
const model = "a folder, or owner/name on the hub";
const reference = "a model (a folder, or owner/name on the hub), or a file of answers (.jsonl)";
const positive = "a positive integer, or null for all";

/** Keys of an entry that choose a seeded subset. */
export const subsampleFields = {
  subsample_n: z.int(positive).positive(positive).nullable().default(null),
  subsample_seed: integerFromZero.default(42),
};

const shared = {
  limit: z.int(positive).positive(positive).nullable().default(null),
  ...subsampleFields,
};
const optional = filledString(model)
  .optional()
  .transform((source) => source ?? null);
const modelSchema = z.strictObject({ model: filledString(model), adapter: optional, tokenizer: optional });
const modelOf = (folder: string) => ({ model: folder, adapter: null, tokenizer: null });

const winRateSchema = z.strictObject({
  win_rate: filledString(source),
  reference: z.union(
    [
      filledString(reference).transform((spec) => (isAnswersFile(spec) ? { answers: spec } : modelOf(spec))),
      modelSchema,
      z.strictObject({ answers: filledString(source) }),
    ],
    reference,
  ),
  judge: filledString("openai:MODEL, anthropic:MODEL, or another judge")
    // Offline rules grade single answers.
    .refine((judge) => !judge.trim().startsWith("rule:"), "a judge model: it compares two answers")
    .meta({ fix: 'Name a judge model ("openai:MODEL", "anthropic:MODEL", "folder:PATH").' })
    .optional(),
  judge_max_calls: positiveInteger.optional(),
  ...shared,
  // `winRate` checks these.
  max_new_tokens: z.unknown().optional(),
  temperature: z.unknown().optional(),
  top_p: z.unknown().optional(),
  max_error_share: z.unknown().optional(),
});

const klSchema = z.strictObject({
  kl_to_reference: z.union(
    [filledString(source), z.record(z.string(), z.unknown())],
    `${source}; or an evaluation whose prompts are used: { task: gsm8k }`,
  ),
  reference: z.union([filledString(model).transform(modelOf), modelSchema], model),
  ...shared,
});

/**
 * Returns the kinds `win_rate` and `kl_to_reference` for entries of `evaluations` in a suite or a `periodic_eval` block:
 *
 *     - { win_rate: prompts.jsonl, reference: path/to/model, judge: openai:MODEL, max_new_tokens: 256 }
 *     - { win_rate: prompts.jsonl, reference: answers.jsonl }
 *     - { kl_to_reference: prompts.jsonl, reference: path/to/model }
 *     - { kl_to_reference: { task: gsm8k, limit: 50 }, reference: { model: path/to/model, adapter: path/to/adapter } }
 *
 * Prompts, answers, the judge's name and the reference's configuration are checked when the entry is opened; the reference's
 * weights load before the first measurement, once for all entries that name it, and are freed when the last of them is closed.
 *
 * @param registry Creates the evaluations whose prompts `kl_to_reference` uses.
 */
export function comparisonEntries(
  registry: EvaluationRegistry,
  { openJudge = openInstalledJudge, engine }: ComparisonOptions = {},
): EvaluationRegistry {
  const referenceOf = async (model: z.output<typeof modelSchema>, where: string) => {
    const { model: folder, adapter, tokenizer } = model;
    return sharedReference({ folder, adapter, tokenizer }, engine ?? (await installedEngine(where)));
  };
  return {
    async win_rate(options, where) {
      const entry = parseOptions(where, winRateSchema, options);
      const { reference: spec, max_new_tokens, temperature, top_p, max_error_share } = entry;
      const { prompts } = await promptsOf(entry.win_rate, yamlOption(where, "win_rate"), entry);
      const judgeKey = { ...optionsAt(where, []), pathOf: () => ["judge"] };
      const judge = await fromWritten(judgeKey, () =>
        openJudge(entry.judge ?? null, {
          ...pairOptions(),
          ...(entry.judge_max_calls !== undefined && { maxCalls: entry.judge_max_calls }),
        }),
      );
      const sampling: WinRateOptions["sampling"] = camelCaseKeys({ max_new_tokens, temperature, top_p });
      const common = {
        prompts,
        judge,
        sampling,
        ...(max_error_share !== undefined && { maxErrorShare: max_error_share as number }),
      };
      if ("answers" in spec) {
        const key = yamlOption(where, "reference");
        const answers = await atOption(key, () => readAnswers(spec.answers, key));
        return withJudge(winRate({ ...common, reference: { answers } }), judge);
      }
      const opened = await referenceOf(spec, where);
      return withReference(withJudge(winRate({ ...common, reference: opened.model }), judge), opened);
    },
    async kl_to_reference(options, where) {
      const entry = parseOptions(where, klSchema, options);
      const { kl_to_reference: prompts, limit } = entry;
      const of =
        typeof prompts === "string"
          ? promptsEvaluation(await promptsOf(prompts, yamlOption(where, "kl_to_reference"), entry))
          : await otherEvaluation(registry, prompts, where);
      const opened = await referenceOf(entry.reference, where);
      const against = { of, against: opened.model };
      const isWhole = limit === null || typeof prompts === "string";
      return withReference(klEvaluation(isWhole ? against : { ...against, limit }), opened);
    },
  };
}

function promptsOf(file: string, key: SourceOption, entry: z.infer<z.ZodObject<typeof shared>>) {
  const { limit, subsample_n: n, subsample_seed: seed } = entry;
  const choice: PromptChoice = { limit, subsample: n === null ? null : { n, seed } };
  return atOption(key, () => readPrompts(file, key, choice));
}

async function otherEvaluation(
  registry: EvaluationRegistry,
  options: Readonly<Record<string, unknown>>,
  where: string,
): Promise<AnyEvaluation> {
  const path = ["kl_to_reference"];
  const kind = kindOf(options, registry, { where, path });
  const written = optionsAt(where, path);
  return fromWritten(written, () => registry[kind]!(options, written.where(path)));
}

/** Adds the life of a reference: its hash with the items, its weights before the first measurement, and their disposal. */
const withReference = (evaluation: AnyEvaluation, reference: Reference): AnyEvaluation => ({
  ...evaluation,
  async items(model) {
    await reference.identify();
    return evaluation.items(model) as Promise<readonly never[]>;
  },
  async check(call) {
    await reference.load();
    await evaluation.check?.(call);
  },
  async close() {
    await evaluation.close?.();
    await reference.close();
  },
});

/** Adds the disposal of a judge that the entry opened. */
const withJudge = (evaluation: AnyEvaluation, judge: Grader): AnyEvaluation => ({
  ...evaluation,
  close: async () => judge.dispose?.(),
});

const openInstalledJudge: OpenPairJudge = async (spec, options) => {
  const open = await importJudgeOpener<typeof options>(spec, (name, cause) =>
    notInstalled("win_rate", "judge", name, "opens judges", cause),
  );
  return open(options);
};
