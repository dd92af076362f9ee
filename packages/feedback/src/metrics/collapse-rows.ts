import type { Abilities, CallOptions, MeasureContext, Prompt, Row, ModelWith } from "@periodic-eval/core";
import type { SamplingOptions } from "@periodic-eval/core/evaluations";
import { seedOf } from "@periodic-eval/core/random";
import {
  baseOf,
  entropyOf,
  perToken,
  scoreAnswers,
  unknown,
  type CollapseReference,
  type Known,
  type ReferenceAnswer,
  type ScoredText,
} from "./collapse-reference.ts";

/** Returns lower-case words and numbers: on ASCII, the tokens of Google's `rouge-score` 0.1.2 without stemming. */
const tokensOf = (text: string): readonly string[] => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/**
 * Returns the ROUGE-L F1 of two texts (Lin 2004), from 0 to 1: twice the length of their longest common subsequence of words,
 * divided by the total number of words. Symmetric. Identical texts score 1, even if they
 * contain no words.
 */
export function rougeL(first: string, second: string): number {
  if (first === second) return 1;
  const [a, b] = [tokensOf(first), tokensOf(second)];
  if (a.length === 0 || b.length === 0) return 0;
  return (2 * longestCommon(a, b)) / (a.length + b.length);
}

function longestCommon(a: readonly string[], b: readonly string[]): number {
  let row = new Uint32Array(b.length + 1);
  for (const word of a) {
    const next = new Uint32Array(b.length + 1);
    for (let j = 1; j <= b.length; j += 1)
      next[j] = word === b[j - 1] ? row[j - 1]! + 1 : Math.max(row[j]!, next[j - 1]!);
    row = next;
  }
  return row[b.length]!;
}

/** Returns the mean ROUGE-L F1 over all pairs of texts; null for fewer than two. */
export function selfRougeL(texts: readonly string[]): number | null {
  const scores = texts.flatMap((text, at) => texts.slice(at + 1).map((other) => rougeL(text, other)));
  return scores.length === 0 ? null : scores.reduce((sum, score) => sum + score, 0) / scores.length;
}

export interface TextItem extends Row {
  readonly kind: "text";
  readonly text: string;
}

export interface ProbeItem extends Row {
  readonly kind: "probe";
  readonly content: string;
  readonly prompt: Prompt;
}

/** The row of the fixed text or of a probe. An unknown value is null, and `reasons` has the reason for each sign. */
export interface CollapseRow extends Row {
  /** The prompt; empty for the fixed text. */
  readonly prompt: string;
  readonly entropyNats: number | null;
  readonly referenceEntropyNats: number | null;
  /** Answers to the probe; empty for the fixed text. */
  readonly answers: readonly {
    readonly text: string;
    readonly nats: number | null;
    readonly tokens: number | null;
  }[];
  readonly selfRougeL: number | null;
  /** Mean log-prob per token of the model's answers under the model, minus that of the baseline's answers under the baseline. */
  readonly ownDrift: number | null;
  /** Mean log-prob per token of the baseline's answers under the model, minus that under the baseline. */
  readonly baselineDrift: number | null;
  readonly reasons: Readonly<Record<string, string>>;
}

export interface CollapseReading {
  /** Answers per probe. */
  readonly samples: number;
  readonly sampling: SamplingOptions;
  /** The baseline. Null: the model without its adapter, if it has one. */
  readonly reference: CollapseReference | null;
}

/** Measures the fixed text: the model's entropy and the baseline's. */
export async function readText(
  model: ModelWith<"generate">,
  item: TextItem,
  { reference }: CollapseReading,
  call: CallOptions,
): Promise<CollapseRow> {
  const now = await entropyOf(model, item.text, call);
  const before = await referenceEntropy(model, item, reference, call);
  return {
    id: item.id,
    ...blank,
    entropyNats: now.value,
    referenceEntropyNats: before.value,
    reasons: { ...why("entropy_nats", now), ...why("entropy_ratio", now), ...why("entropy_ratio", before) },
  };
}

async function referenceEntropy(
  model: ModelWith<"generate">,
  item: TextItem,
  reference: CollapseReference | null,
  call: CallOptions,
): Promise<Known<number>> {
  if (reference !== null)
    return reference.entropyNats === null
      ? unknown("the baseline's entropy is not known")
      : { value: reference.entropyNats };
  const base = baseOf(model);
  return base === null ? noBaseline : entropyOf(base, item.text, call);
}

/** Measures a probe: the model's answers, their similarity, and both drifts. */
export async function readProbe(
  model: ModelWith<"generate">,
  item: ProbeItem,
  reading: CollapseReading,
  context: MeasureContext,
): Promise<CollapseRow> {
  const texts = await answer(model, item, "model", reading, context);
  const scored = await scoreAnswers(model, item.prompt, texts, context);
  const before = await referenceAnswers(model, item, reading, context);
  const rescored =
    before.value === null
      ? before
      : await scoreAnswers(
          model,
          item.prompt,
          before.value.map(({ text }) => text),
          context,
        );
  const [ownDrift, baselineDrift] = [driftOf(scored, before), driftOf(rescored, before)];
  return {
    id: item.id,
    ...blank,
    prompt: item.content,
    answers: texts.map((text, at) => ({
      text,
      nats: scored.value?.[at]?.nats ?? null,
      tokens: scored.value?.[at]?.tokens ?? null,
    })),
    selfRougeL: selfRougeL(texts),
    ownDrift: ownDrift.value,
    baselineDrift: baselineDrift.value,
    reasons: { ...why("own_drift", ownDrift), ...why("baseline_drift", baselineDrift) },
  };
}

/** Draws independent answers, each with a separate random stream. The baseline's streams differ from the model's. */
async function answer(
  model: Pick<Abilities, "generate">,
  item: ProbeItem,
  who: "model" | "base",
  { samples, sampling }: CollapseReading,
  { seed, signal }: MeasureContext,
): Promise<readonly string[]> {
  const requests = Array.from({ length: samples }, (_, sample) => ({
    prompt: item.prompt,
    sampling: { ...sampling, seed: seedOf(seed, "collapse", who, item.id, sample) },
  }));
  return (await model.generate(requests, { signal })).map(({ text }) => text);
}

/** Returns the baseline's answers to a probe with their log-probs. */
async function referenceAnswers(
  model: ModelWith<"generate">,
  item: ProbeItem,
  reading: CollapseReading,
  context: MeasureContext,
): Promise<Known<readonly ReferenceAnswer[]>> {
  if (reading.reference !== null) {
    const answers = reading.reference.answers?.[item.id];
    return answers === undefined
      ? unknown("the baseline has no scored answers to this probe")
      : { value: answers };
  }
  const base = baseOf(model);
  if (base === null) return noBaseline;
  const texts = await answer(base, item, "base", reading, context);
  const scored = await scoreAnswers(base, item.prompt, texts, context);
  if (scored.value === null) return scored;
  return {
    value: texts.flatMap((text, at) => (scored.value[at] == null ? [] : [{ text, ...scored.value[at] }])),
  };
}

/** Returns the difference of the mean log-probs per token. */
function driftOf(
  now: Known<readonly (ScoredText | null)[]>,
  before: Known<readonly ScoredText[]>,
): Known<number> {
  if (now.value === null) return now;
  if (before.value === null) return before;
  const [level, earlier] = [perToken(now.value), perToken(before.value)];
  return level === null || earlier === null ? unknown("no answer has a word") : { value: level - earlier };
}

const noBaseline = unknown("there is no baseline: neither a reference nor a model without its adapter");

const blank = {
  prompt: "",
  entropyNats: null,
  referenceEntropyNats: null,
  answers: [],
  selfRougeL: null,
  ownDrift: null,
  baselineDrift: null,
} as const;

const why = (sign: string, known: Known<unknown>): Readonly<Record<string, string>> =>
  known.value === null && "reason" in known ? { [sign]: known.reason } : {};
