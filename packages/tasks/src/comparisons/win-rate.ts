import * as z from "zod";
import { configError, isRecord, judgeError, parseOptions } from "@periodic-eval/contracts/options";
import {
  defineEvaluation,
  type PeriodicEvalError,
  type EvaluableModel,
  type Grader,
  type Json,
  type MeasureContext,
  type MetricKit,
  type Prompt,
  type Row,
  type Sampling,
  type Verdict,
  type ModelWith,
  judgeGrader,
  type JudgeGrader,
  type JudgeOptions,
} from "@periodic-eval/core";
import { measureInBatches, requestsFor, resolveSampling } from "@periodic-eval/core/evaluations";
import { graderSchema, readVerdicts } from "@periodic-eval/core/grading";
import { hashJson } from "@periodic-eval/core/random";

/** A prompt that a judge can read: a text, or a chat. */
export type WrittenPrompt = Exclude<Prompt, { readonly ids: unknown }>;

export interface PairPrompt extends Row {
  /** The prompt of both models; a string becomes a chat with one user turn. */
  readonly prompt: string | WrittenPrompt;
}

export interface WinRateOptions {
  readonly prompts: readonly PairPrompt[];
  /** Another model, which answers the same prompts in the same window, or its answers by prompt id. */
  readonly reference: EvaluableModel | { readonly answers: Readonly<Record<string, string>> };
  /** Grades two answers shown at once, with the scores `first` and `second`; see `pairJudge`. */
  readonly judge: Grader;
  /** The sampling of both models; default greedy, 512 tokens. */
  readonly sampling?: Partial<Pick<Sampling, "maxNewTokens" | "temperature" | "topP">>;
  /** The share of prompts without a verdict above which a measurement is `failed`; default 0.1. */
  readonly maxErrorShare?: number;
}

interface PairItem extends Row {
  readonly prompt: WrittenPrompt;
}

/** A prompt and its two answers. */
export interface PairRow extends Row {
  readonly question: string;
  readonly answer: string;
  readonly referenceAnswer: string;
}

/** The better answer, according to one verdict on a pair. */
export type Preference = "model" | "reference" | "tie";

export interface JudgedPair extends PairRow {
  /** The verdicts with the model's answer shown first, and second; null if the judge failed. */
  readonly preferences: readonly [first: Preference | null, second: Preference | null];
  /** Null if one of the preferences is. */
  readonly outcome: "win" | "loss" | "tie" | null;
  /** The judge's replies, in the same order. */
  readonly raw: readonly [string | null, string | null];
}

const pairsPerCall = 16;

/**
 * Measures how often a judge prefers the model's answer to a reference's. Each pair is judged in both orders; the model wins only if
 * both verdicts say so, and disagreement is a tie (Zheng et al. 2023, arXiv:2306.05685). `win_rate`, the primary metric, counts a tie
 * as half a win; its interval is over prompts. `order_disagreement` is the share of pairs whose two verdicts differ.
 * `first_preferred` measures the judge's position bias: the share of decided verdicts that prefer the answer shown first, 0.5
 * without bias. Pairs with a failed verdict are in none of these; `ungraded` counts them.
 *
 * @throws PeriodicEvalError `config` for a wrong option, or a prompt whose reference answer is missing.
 */
export function winRate(options: WinRateOptions) {
  checkOptions(options);
  const { prompts, reference, judge, maxErrorShare = 0.1 } = options;
  const defaults = { maxNewTokens: 512, temperature: 0 };
  const sampling = resolveSampling(`${where}.sampling`, options.sampling, defaults);
  const answered = "answers" in reference;
  return defineEvaluation({
    name: "win_rate",
    version: "win-rate-1",
    needs: ["generate"],
    items: (): readonly PairItem[] => prompts.map(({ id, prompt }) => ({ id, prompt: promptOf(prompt) })),
    provenance: (): Json => ({
      sampling,
      reference: answered
        ? { answers: hashJson({ ...reference.answers }) }
        : (JSON.parse(JSON.stringify(reference.identity)) as Json),
      judge: { name: judge.name, fingerprint: judge.fingerprint, about: judge.describe?.() ?? null },
      max_error_share: maxErrorShare,
    }),
    prompts: (_, items) => items.map(({ prompt }) => prompt),
    ...(judge.check !== undefined && { check: (call) => judge.check!(call) }),
    measure: (model, items, context) =>
      measureInBatches(
        items,
        context,
        async (some): Promise<readonly PairRow[]> => {
          const ours = await answersOf(model, some, sampling, context);
          const theirs = answered
            ? some.map(({ id }) => reference.answers[id]!)
            : await answersOf(reference as ModelWith<"generate">, some, sampling, context);
          return some.map(({ id, prompt }, at) => {
            return { id, question: questionOf(prompt), answer: ours[at]!, referenceAnswer: theirs[at]! };
          });
        },
        pairsPerCall,
      ),
    async grade(rows, call): Promise<readonly JudgedPair[]> {
      const requests = rows.flatMap(({ question, answer, referenceAnswer }) => [
        { question, answer: pairText(answer, referenceAnswer) },
        { question, answer: pairText(referenceAnswer, answer) },
      ]);
      const verdicts = readVerdicts(judge, await judge.grade(requests, call), 2 * rows.length);
      return rows.map((row, at) => judged(row, verdicts[2 * at]!, verdicts[2 * at + 1]!));
    },
    failure: (rows) => failureOf(rows, maxErrorShare),
    answers: {
      question: "question",
      answer: "answer",
      grades: ["outcome"],
      flags: [
        { name: "loss", any: [{ outcome: { is: ["loss"] } }] },
        { name: "ungraded", any: [{ outcome: { is: [null] } }] },
      ],
    },
    metrics: (kit: MetricKit<JudgedPair>) => winMetrics(kit, sampling.temperature > 0),
    plainKeys: (_, rows) => {
      const count = (is: (row: JudgedPair) => boolean) => rows.filter(is).length;
      return {
        wins: count(({ outcome }) => outcome === "win"),
        losses: count(({ outcome }) => outcome === "loss"),
        ties: count(({ outcome }) => outcome === "tie"),
        ungraded: count(({ outcome }) => outcome === null),
        num_prompts: rows.length,
      };
    },
  });
}

function winMetrics({ mean, rate, ratio }: MetricKit<JudgedPair>, sampled: boolean) {
  const worth = { win: 1, tie: 0.5, loss: 0 } as const;
  return {
    win_rate: mean(({ outcome }) => outcome && worth[outcome], {
      higherIsBetter: true,
      primary: true,
      unit: "share",
      sampled,
    }),
    tie_rate: rate(({ outcome }) => outcome && outcome === "tie", { sampled }),
    order_disagreement: rate(
      ({ outcome, preferences: [first, second] }) => (outcome === null ? null : first !== second),
      { sampled },
    ),
    first_preferred: ratio(
      ({ outcome, preferences: [first, second] }) => {
        const decided = [first, second].filter((vote) => vote === "model" || vote === "reference").length;
        const forFirst = (first === "model" ? 1 : 0) + (second === "reference" ? 1 : 0);
        return outcome === null || decided === 0 ? null : [forFirst, decided];
      },
      { unit: "share", range: [0, 1], sampled },
    ),
    ungraded: rate(({ outcome }) => outcome === null, { higherIsBetter: false, sampled }),
  };
}

function judged(row: PairRow, shownFirst: Verdict, shownSecond: Verdict): JudgedPair {
  const first = preferenceOf(shownFirst, "model", "reference");
  const second = preferenceOf(shownSecond, "reference", "model");
  const agreed = first !== second || first === "tie" ? "tie" : first === "model" ? "win" : "loss";
  const outcome = first === null || second === null ? null : agreed;
  return { ...row, preferences: [first, second], outcome, raw: [shownFirst.raw, shownSecond.raw] };
}

function preferenceOf(
  verdict: Verdict,
  first: Exclude<Preference, "tie">,
  second: Exclude<Preference, "tie">,
): Preference | null {
  if (verdict.status !== "graded") return null;
  const [score, otherScore] = pairScores.map((name) => verdict.scores[name]);
  if (score === undefined || otherScore === undefined) return null;
  return score === otherScore ? "tie" : score > otherScore ? first : second;
}

async function answersOf(
  model: ModelWith<"generate">,
  items: readonly PairItem[],
  sampling: Omit<Sampling, "seed">,
  { signal, seed }: MeasureContext,
): Promise<readonly string[]> {
  const prompts = items.map(({ prompt }) => prompt);
  const requests = requestsFor(prompts, { first: 0, end: 1 }, sampling, seed);
  return (await model.generate(requests, { signal })).map(({ text }) => text);
}

const promptOf = (prompt: string | WrittenPrompt): WrittenPrompt =>
  typeof prompt === "string" ? { messages: [{ role: "user", content: prompt }] } : prompt;

/** Returns a prompt as the judge reads it. */
function questionOf(prompt: WrittenPrompt): string {
  if ("text" in prompt) return prompt.text;
  const { messages } = prompt;
  if (messages.length === 1) return messages[0]!.content;
  return messages.map(({ role, content }) => `${role}: ${content}`).join("\n\n");
}

function failureOf(rows: readonly JudgedPair[], maxErrorShare: number): PeriodicEvalError | null {
  const failed = rows.filter(({ outcome }) => outcome === null);
  if (failed.length <= maxErrorShare * rows.length) return null;
  return judgeError(
    "win_rate",
    `${failed.length} of ${rows.length} pairs without a verdict (${failed[0]!.raw.find((raw) => raw !== null) ?? "no reply"})`,
    `at most ${100 * maxErrorShare} %`,
    "Read the judge's replies; if they do not follow the format, change the prompt or use a larger judge.",
  );
}

const prompts = "a non-empty array of { id, prompt }";
const share = "a share from 0 to 1";

const written = "a string, { text } or { messages }";

const promptSchema = z.looseObject({
  id: z.string("a string"),
  prompt: z
    .union(
      [z.string(), z.looseObject({ text: z.string() }), z.looseObject({ messages: z.array(z.unknown()) })],
      written,
    )
    .meta({ fix: "Write the prompt as text: the judge reads it." }),
});

const optionsSchema = z.strictObject({
  prompts: z.array(promptSchema, prompts).min(1, prompts),
  reference: z.custom(isRecord, "a model, or { answers }"),
  judge: graderSchema,
  // `resolveSampling` checks it.
  sampling: z.unknown().optional(),
  maxErrorShare: z.number(share).min(0, share).max(1, share).optional(),
} satisfies Record<keyof WinRateOptions, z.ZodType>);

const where = "winRate options";

function checkOptions(options: WinRateOptions): void {
  parseOptions(where, optionsSchema, options);
  const { reference } = options;
  if ("answers" in reference) {
    const missing = options.prompts.find(({ id }) => !Object.hasOwn(reference.answers, id));
    if (missing === undefined) return;
    const got = `no answer for the prompt "${missing.id}"`;
    throw configError({ where, path: ["reference", "answers"], got, expected: "an answer to each prompt" });
  }
  if (reference.generate !== undefined) return;
  const got = `the model "${reference.identity.name}", which cannot generate`;
  throw configError({ where, path: ["reference"], got, expected: "a model with the ability generate" });
}

/** The scores of a pair judge: for the answer that it sees first, and for the second. */
const pairScores = ["first", "second"] as const;

const instructions = `Two assistants were given the same request. Compare their answers.

[REQUEST]
{question}
[END OF REQUEST]

{answer}

Rate each answer from 0 (useless) to 100 (could not be better) by how well it does what was asked: whether it is right, complete, clear, and free of what was not asked for. A longer answer is not better for its length, nor one for the place at which it stands. Give the same number twice where neither is better.
Reply with one JSON object and nothing else, in this form:
{"reasoning": "<one short sentence>", "first": <number>, "second": <number>}`;

/** Formats two answers for the judge's prompt. */
const pairText = (first: string, second: string): string =>
  `[FIRST ANSWER]\n${first}\n[END OF FIRST ANSWER]\n\n[SECOND ANSWER]\n${second}\n[END OF SECOND ANSWER]`;

export interface PairJudgeOptions extends Omit<JudgeOptions, "scores" | "prompts" | "method"> {
  /** The judge's prompt, with `{question}` and `{answer}` (both answers) in it; a default is included. */
  readonly prompt?: string;
}

/**
 * Returns a grader for `winRate`: a language model that sees two answers at once and scores each.
 *
 * @throws PeriodicEvalError as `judgeGrader`.
 */
export function pairJudge({ prompt = instructions, ...options }: PairJudgeOptions): Promise<JudgeGrader> {
  return judgeGrader({ ...options, ...pairOptions(prompt) });
}

/** The options by which any judge grades pairs. */
export const pairOptions = (prompt = instructions) =>
  ({ method: "json", scores: pairScores, prompts: { json: prompt } }) as const;
