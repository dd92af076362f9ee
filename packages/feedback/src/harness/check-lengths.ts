import type { BulkTokenizer, LogLikelihoodRequest, Prompt, ValuePath } from "@periodic-eval/core";
import { encodePairs, renderPrompts } from "@periodic-eval/core/evaluations";
import { abbreviated, configError, pathText, quoteValue } from "@periodic-eval/contracts/options";
import type { HarnessConfig } from "../config/schema.ts";
import type { FeedbackModel } from "../engine/types.ts";
import type { CollapseProbes } from "../metrics/collapse.ts";
import { generalProbes, type GeneralQuestion } from "../metrics/general.ts";
import { feedbackOf, teacherTurnOf, type PlacedPreference } from "../preferences/preference.ts";
import { withTrainPrompts } from "../preferences/unknown-results.ts";

export interface CheckedTexts {
  readonly config: HarnessConfig;
  readonly preferences: readonly PlacedPreference[];
  readonly probes: CollapseProbes;
  /** Null: the coding task and the instructions. */
  readonly questions: readonly GeneralQuestion[] | null;
}

/** A prompt or an answer, whose length is checked. */
interface CheckedText {
  readonly where: string;
  readonly got: string;
  readonly fix: string;
  /** The prompt, or an answer after its prompt, which counts alone. */
  readonly text: Prompt | LogLikelihoodRequest;
  /** Tokens that the model reads besides. Default 0. */
  readonly more?: number;
}

/**
 * Requires that the model can read every prompt, answer and feedback turn of the run, with the messages that its chat template
 * adds. Does nothing for an engine that does not report its tokenizer or its context length. A feedback turn is counted without
 * the answer, which is not known before training.
 *
 * @throws PeriodicEvalError `config` that names the longest text, with its file, and the number of other texts that are too long.
 */
export async function checkLengths(
  texts: CheckedTexts,
  { evaluable, hindsight }: FeedbackModel,
): Promise<void> {
  const { tokenizer, contextLength, identity } = evaluable;
  if (tokenizer === undefined || contextLength === null) return;
  const checked = await withLengths(tokenizer, [
    ...texts.preferences.flatMap((placed) => preferenceTexts(placed, texts.config, hindsight)),
    ...probeTexts(texts),
  ]);
  const tooLong = checked.filter(({ tokens }) => tokens > contextLength);
  const [longest, ...rest] = tooLong.toSorted((a, b) => b.tokens - a.tokens);
  if (longest === undefined) return;
  const { where, got, tokens, fix } = longest;
  const more = rest.length === 0 ? "" : ` (${rest.length} more of the run's texts are too long)`;
  throw configError({
    where,
    got: `${got} of ${tokens} tokens${more}`,
    expected: `at most ${contextLength} tokens, the context length of ${identity.name}`,
    fix: `${fix}, or set base_model to a model that reads ${tokens} tokens or more.`,
  });
}

/** Counts the tokens of all texts, with a few calls of the tokenizer. */
async function withLengths(tokenizer: BulkTokenizer, texts: readonly CheckedText[]) {
  const answers = texts.flatMap(({ text }) => ("context" in text ? [text] : []));
  const prompts = texts.flatMap(({ text }) => ("context" in text ? [] : [text]));
  const pairs = (await encodePairs(tokenizer, answers)).values();
  const rendered = (await renderPrompts(tokenizer, prompts)).values();
  return texts.map((entry) => {
    const ids = "context" in entry.text ? pairs.next().value!.continuation : rendered.next().value!.ids;
    return { ...entry, tokens: ids.length + (entry.more ?? 0) };
  });
}

function preferenceTexts(
  { preference, placeOf }: PlacedPreference,
  { metrics, feedback_repetitions: repetitions }: HarnessConfig,
  defaultHindsight: string | undefined,
): readonly CheckedText[] {
  const { logprob_pairs: pairs, probe_prompts: probes } = preference;
  const { train_prompts: trained } = withTrainPrompts(preference);
  const promptsOf = (list: string, prompts: readonly string[]) =>
    prompts.map((prompt, at) => promptText(placeOf([list, at]), prompt));
  const answers = pairs.flatMap((pair, at) =>
    (["chosen", "rejected"] as const).map((key): CheckedText => {
      return {
        where: placeOf(["logprob_pairs", at, key]),
        got: `the answer ${quoted(pair[key])}`,
        text: { context: turn(pair.prompt), continuation: pair[key] },
        fix: "Shorten it, leave logprob out of metrics",
      };
    }),
  );
  const template = preference.hindsight ?? defaultHindsight ?? null;
  const feedback = feedbackOf(preference, repetitions);
  return [
    ...(metrics.includes("logprob") ? answers : []),
    ...promptsOf("train_prompts", preference.train_prompts),
    ...(trained === probes || metrics.includes("compliance") ? promptsOf("probe_prompts", probes) : []),
    ...(template === null
      ? []
      : trained.map((prompt): CheckedText => {
          const text = teacherTurnOf({ hindsight: template }, { prompt, response: "", feedback })!;
          return {
            where: placeOf(["feedback_string"]),
            got: `a teacher's turn (the prompt ${quoted(prompt)} and the feedback)`,
            text: turn(text),
            // The teacher also reads one token of the answer.
            more: 1,
            fix: "Shorten the feedback or the prompt",
          };
        })),
  ];
}

/** Returns the prompts of the metrics that all preferences share. */
function probeTexts({ config, probes, questions }: CheckedTexts): readonly CheckedText[] {
  const { metrics, general_probes: generalFile, collapse_probes: collapseFile } = config;
  const whereOf = (metric: string, file: string | null, path: ValuePath) =>
    file === null ? `the default prompts of ${metric}` : `${file} ${pathText(path).replace(/^\./, "")}`;
  const textOf = (metric: string, file: string | null, path: ValuePath, prompt: string): CheckedText => {
    const text = promptText(whereOf(metric, file, path), prompt);
    return file === null
      ? { ...text, fix: `Leave ${metric} out of metrics, set ${metric}_probes to a file` }
      : text;
  };
  const general = (questions ?? generalProbes).map(({ prompt }, at) =>
    textOf("general", generalFile, ["questions", at, "prompt"], prompt),
  );
  const collapse = probes.prompts.map((prompt, at) =>
    textOf("collapse", collapseFile, ["prompts", at], prompt),
  );
  return [...(metrics.includes("general") ? general : []), ...(metrics.includes("collapse") ? collapse : [])];
}

const promptText = (where: string, prompt: string): CheckedText => ({
  where,
  got: `the prompt ${quoted(prompt)}`,
  text: turn(prompt),
  fix: "Shorten it",
});

const turn = (content: string): Prompt => ({ messages: [{ role: "user", content }] });

const quoted = (text: string): string => quoteValue(abbreviated(text));
