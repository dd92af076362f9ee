import { binomialTail } from "../../statistics/distributions.ts";
import { formatValue } from "../../statistics/format.ts";
import { modelError } from "@periodic-eval/contracts/options";
import {
  type AnswerFields,
  type MeasurementWarning,
  type Metric,
  type MetricKit,
  type MetricOptions,
  type Row,
  type Json,
  type MetricValue,
  type CallOptions,
  type Prompt,
  type ModelWith,
  grouped,
} from "@periodic-eval/contracts";
import type { ArcQuestion } from "@periodic-eval/data";

/** The scores of one question and the indices of its right choices. */
export interface GoldScores {
  readonly nats: readonly number[];
  readonly gold: readonly number[];
}

/**
 * Continuous companions of accuracy: `gold_log_prob` (log p of the right choices together), `gold_margin` (best right choice
 * against best wrong one) and `gold_prob` (probability of the right choices among all). They detect smaller drifts, because
 * the model can answer a question right with less certainty than before.
 *
 * @param scoresOf Returns null for a row that was not scored.
 */
export function goldMetrics<R extends Row>(
  { mean }: MetricKit<R>,
  scoresOf: (row: R) => GoldScores | null,
  grouping: Pick<MetricOptions<R>, "by" | "cluster"> = {},
) {
  const options = { higherIsBetter: true, ...grouping };
  const meanOf = (
    value: (nats: readonly number[], gold: readonly number[]) => number | null,
    more: MetricOptions<R>,
  ) =>
    mean(
      (row) => {
        const scores = scoresOf(row);
        return scores === null ? null : value(scores.nats, scores.gold);
      },
      { ...options, ...more },
    );
  return {
    gold_log_prob: meanOf(goldLogProb, { unit: "nats", range: [-Infinity, 0] }),
    gold_margin: meanOf(goldMargin, { unit: "nats" }),
    gold_prob: meanOf(goldProb, { unit: "probability", range: [0, 1] }),
  } satisfies Record<string, Metric<R>>;
}

/** The metrics of multiple-choice questions. Accuracy carries the verdict; `brier` is that of `brierScore`. */
export function choiceMetrics<R extends ChoiceRow>(
  kit: MetricKit<R>,
  grouping: Pick<MetricOptions<R>, "by" | "cluster"> = {},
) {
  const scoresOf = ({ nats, labels, gold }: ChoiceRow) =>
    nats === null ? null : { nats, gold: [labels.indexOf(gold)] };
  return {
    accuracy: kit.rate((row) => row.correct, { higherIsBetter: true, ...grouping, primary: true }),
    ...goldMetrics(kit, scoresOf, grouping),
    brier: kit.mean(({ nats, labels, gold }) => nats && brierScore(nats, labels.indexOf(gold)), {
      higherIsBetter: false,
      range: [0, 2],
      ...grouping,
    }),
  } satisfies Record<string, Metric<R>>;
}

/**
 * Warns if accuracy is no evidence of more than guessing: by chance, at least as many questions are right in more than 5 % of cases.
 * Also if far fewer are right than by chance (p < 0.001). Returns no warning if there are so few questions that guessing could get all
 * of them right. Personas answer the same question alike, so a question counts once, by their average.
 */
export function chanceWarnings(rows: readonly ChoiceRow[]): readonly MeasurementWarning[] {
  const scored = rows.filter(({ status }) => status === "scored");
  const questions = [...grouped(scored, questionOf).values()];
  const shares = questions.map((answers) =>
    average(answers.map(({ correct }) => (correct === true ? 1 : 0))),
  );
  const [count, total] = [Math.round(sumOf(shares)), shares.length];
  // A binomial with the mean chance has the wider tails.
  const chance = average(questions.map(([first]) => 1 / first!.labels.length));
  const isUnlikely = (hits: number) => binomialTail(hits, total, chance) <= 0.05;
  if (total === 0 || isUnlikely(count) || !isUnlikely(total)) return [];
  const isBelow = binomialTail(total - count, total, 1 - chance) < 0.001;
  const right = `${count} of ${total} questions right${scored.length === total ? "" : " on average"}`;
  const guessing = formatValue(chance, "share");
  const message = isBelow
    ? `${right} is far fewer than guessing gives (${guessing}). Check the answer key, and whether the model prefers one choice.`
    : `${right} (${formatValue(count / total, "share")}) is no evidence of more than guessing (${guessing}). The right-answer log prob shows smaller changes.`;
  return [{ kind: "at_chance", metrics: ["accuracy"], count, total, void: false, message }];
}

/** Returns the id of a row's question, which several personas may answer. */
export const questionOf = ({ id, persona }: Pick<ChoiceRow, "id" | "persona">): string =>
  persona === undefined ? id : id.slice(persona.length + 1);

/** The fields of a `ChoiceRow`. */
export const choiceFields = {
  question: "question",
  prompt: "prompt",
  persona: "persona",
  reply: "reason",
  choices: { labels: "labels", texts: "choices", nats: "nats", gold: "gold", predicted: "predicted" },
  flags: [
    { name: "wrong", any: [{ correct: { is: [false] } }] },
    { name: "ungraded", any: [{ status: { is: ["template_failure", "label_collision"] } }] },
    { name: "truncated", any: [{ truncatedTokens: { above: 0 } }] },
  ],
  tokens: { "cut off": "truncatedTokens" },
} satisfies AnswerFields;

/** Keys at the snapshot's top level. `total` counts the scored questions; for `ece` and `reliability` see `reliabilityOf`. */
export function choicePlainKeys(
  metrics: Readonly<Record<string, MetricValue>>,
  rows: readonly ChoiceRow[],
): Readonly<Record<string, Json>> {
  const count = (is: (row: ChoiceRow) => boolean) => rows.filter(is).length;
  return {
    accuracy: metrics["accuracy"]?.value ?? null,
    correct: count((row) => row.correct === true),
    total: count((row) => row.status === "scored"),
    template_failures: count((row) => row.status === "template_failure"),
    label_collisions: count((row) => row.status === "label_collision"),
    truncated: truncatedRows(rows),
    ...reliabilityOf(rows),
  };
}

const bins = 10;

/**
 * Returns how well confidence, the probability of the chosen choice among the choices, equals the share of right answers
 * (Guo et al. 2017, arXiv:1706.04599).
 *
 * - `ece`, the expected calibration error Σ n_b / N · |accuracy_b − confidence_b|, in [0, 1]; null without scored questions.
 *   With few questions it is above 0 for a calibrated model too: 200 questions give about 0.06. `brier` has no such bias.
 * - `reliability`: the bins of equal width (above `from`, up to `from + 0.1`) that hold questions.
 */
export function reliabilityOf(rows: readonly ChoiceRow[]) {
  const scored = rows.flatMap(({ nats, correct }) =>
    nats === null ? [] : [{ confidence: Math.max(...probabilities(nats)), correct: correct === true }],
  );
  const binOf = ({ confidence }: { readonly confidence: number }) =>
    Math.max(0, Math.ceil(confidence * bins) - 1);
  const reliability = [...grouped(scored, (row) => String(binOf(row)))]
    .map(([bin, members]) => ({
      from: Number(bin) / bins,
      n: members.length,
      confidence: average(members.map(({ confidence }) => confidence)),
      accuracy: members.filter(({ correct }) => correct).length / members.length,
    }))
    .toSorted((a, b) => a.from - b.from);
  const gaps = reliability.map(({ n, confidence, accuracy }) => n * Math.abs(accuracy - confidence));
  return { ece: scored.length === 0 ? null : sumOf(gaps) / scored.length, reliability };
}

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0);
const average = (values: readonly number[]) => sumOf(values) / values.length;

/** The result of one multiple-choice question. */
export interface ChoiceRow extends Row {
  /**
   * `template_failure`: the chat template failed. `label_collision`: two labels share a first token, or a label has no token.
   * Neither is scored.
   */
  readonly status: "scored" | "template_failure" | "label_collision";
  /** Absent in rows of earlier releases, as are `choices`. */
  readonly question?: string;
  readonly labels: readonly string[];
  /** One string per label. */
  readonly choices?: readonly string[];
  readonly gold: string;
  /** The label with the highest log-probability, the first of equal ones; null if not scored. */
  readonly predicted: string | null;
  readonly correct: boolean | null;
  /** log p of each choice, in the order of the labels; null if not scored. */
  readonly nats: readonly number[] | null;
  /** Tokens cut on the left to fit the model; null if the engine does not report it. */
  readonly truncatedTokens: number | null;
  /** The whole prompt; absent if it has few-shot examples or the template failed. */
  readonly prompt?: string | null;
  /** Id of the persona; absent without personas. */
  readonly persona?: string;
  /** Why the question was not scored. */
  readonly reason?: string;
}

export function unscored(item: ArcQuestion, status: ChoiceRow["status"], reason: string): ChoiceRow {
  const unknown = { predicted: null, correct: null, nats: null };
  return { ...asked(item, status), ...unknown, truncatedTokens: 0, reason };
}

/** @param at Index of the chosen label. */
export function scored(
  item: ArcQuestion,
  at: number,
  { nats, truncatedTokens }: Pick<ChoiceScores, "nats" | "truncatedTokens">,
): ChoiceRow {
  const predicted = item.labels[at]!;
  const correct = predicted === item.gold;
  return { ...asked(item, "scored"), predicted, correct, nats, truncatedTokens };
}

/** Returns the fields of a row that come from its question. They make a file of rows readable without the question file. */
function asked({ id, question, labels, choices, gold }: ArcQuestion, status: ChoiceRow["status"]) {
  return { id, status, question, labels, choices, gold };
}

/** A question whose choices are scored as continuations of one context. */
export interface ChoiceRequest {
  /** Names the question in errors. */
  readonly id: string;
  readonly context: Prompt;
  readonly continuations: readonly string[];
}

/** The log-likelihoods of one question's choices, in their order; C choices. */
export interface ChoiceScores {
  /** Σ log p of each choice in nats, [C]. All finite. */
  readonly nats: readonly number[];
  /** The number of tokens of each choice, [C]. */
  readonly tokens: readonly number[];
  /** Whether every token of a choice was the most likely one, [C]; null if the engine does not report it. */
  readonly isGreedy: readonly (boolean | null)[];
  /** Tokens of the context cut on the left to fit the model: the maximum over the choices; null if the engine does not report it. */
  readonly truncatedTokens: number | null;
}

/**
 * Scores every choice of every question in one call of the model. Cloze evaluations of this package and of
 * `@periodic-eval/tasks` share this function.
 *
 * @throws PeriodicEvalError `model` if a log-likelihood is not finite.
 */
export async function scoreChoices(
  model: ModelWith<"logLikelihoods">,
  requests: readonly ChoiceRequest[],
  options: CallOptions,
): Promise<readonly ChoiceScores[]> {
  const pairs = requests.flatMap(({ context, continuations }) =>
    continuations.map((continuation) => ({ context, continuation })),
  );
  const answers = (await model.logLikelihoods(pairs, options)).values();
  return requests.map(({ id, continuations }) => {
    const scores = continuations.map(() => answers.next().value!);
    const nats = scores.map(({ sumNats }) => sumNats);
    checkLogProbs(id, nats, continuations.length);
    return {
      nats,
      tokens: scores.map(({ tokenNats }) => tokenNats.length),
      isGreedy: scores.map(({ isGreedy }) => isGreedy),
      truncatedTokens: highestOrNull(scores.map(({ truncatedTokens }) => truncatedTokens)),
    };
  });
}

const highestOrNull = (counts: readonly (number | null)[]): number | null =>
  counts.every((count) => count !== null) ? Math.max(...counts) : null;

/** Counts the rows with truncated tokens; null if a row's number is unknown. */
export const truncatedRows = (rows: readonly { readonly truncatedTokens: number | null }[]): number | null =>
  rows.every(({ truncatedTokens }) => truncatedTokens !== null)
    ? rows.filter(({ truncatedTokens }) => truncatedTokens! > 0).length
    : null;

/** @throws PeriodicEvalError `model` unless `nats` are `count` finite numbers. */
export function checkLogProbs(id: string, nats: readonly number[], count: number): void {
  if (nats.length === count && nats.every(Number.isFinite)) return;
  throw modelError(
    `question ${id}`,
    `log-probabilities [${nats.join(", ")}]`,
    `${count} finite numbers`,
    "Check the training loss: NaN or infinite weights cause this, and so does the log of an underflowed softmax.",
  );
}

/** Returns the index of the highest value, the first of equal ones. */
export function indexOfHighest(values: readonly number[]): number {
  return values.indexOf(Math.max(...values));
}

/** The index of the best choice: by Σ log p, and by Σ log p per code point of the choice. */
export interface PredictedChoice {
  readonly bySum: number;
  readonly perCodePoint: number;
}

/**
 * Returns the best choice as lm-evaluation-harness 0.4.13 selects it for `acc` (`bySum`) and `acc_norm` (`perCodePoint`); the
 * first of equal ones.
 */
export function predictChoice(nats: readonly number[], choices: readonly string[]): PredictedChoice {
  return { bySum: indexOfHighest(nats), perCodePoint: indexOfHighest(perCodePoint(nats, choices)) };
}

/** Returns Σ log p of each choice divided by the number of code points of its text. */
export function perCodePoint(nats: readonly number[], choices: readonly string[]): readonly number[] {
  return nats.map((sum, at) => sum / Array.from(choices[at]!).length);
}

/** Returns the log of the summed probability of the right choices. `gold` holds one or more indices into `nats`. */
export function goldLogProb(nats: readonly number[], gold: readonly number[]): number {
  const right = gold.map((at) => nats[at]!);
  const top = Math.max(...right);
  return top + Math.log(right.reduce((sum, logProb) => sum + Math.exp(logProb - top), 0));
}

/** Returns log p of the best right choice minus log p of the best wrong one; null without a wrong choice. */
export function goldMargin(nats: readonly number[], gold: readonly number[]): number | null {
  const wrong = nats.filter((_, at) => !gold.includes(at));
  return wrong.length === 0 ? null : Math.max(...gold.map((at) => nats[at]!)) - Math.max(...wrong);
}

/** Returns the probability of each choice among all choices: a softmax of the log-probabilities. */
function probabilities(nats: readonly number[]): readonly number[] {
  const highest = Math.max(...nats);
  const weights = nats.map((logProb) => Math.exp(logProb - highest));
  const total = sumOf(weights);
  return weights.map((weight) => weight / total);
}

/** Returns Σ (p − y)² over the choices, in [0, 2] (Brier 1950), where y is 1 for the right choice and 0 for the others. */
export function brierScore(nats: readonly number[], gold: number): number {
  return sumOf(probabilities(nats).map((p, at) => (p - (at === gold ? 1 : 0)) ** 2));
}

/** Returns the probability of the right choices among all choices, in (0, 1]: a softmax of the log-probabilities. */
export function goldProb(nats: readonly number[], gold: readonly number[]): number {
  const right = goldLogProb(nats, gold);
  const wrong = nats.filter((_, at) => !gold.includes(at));
  return 1 / (1 + wrong.reduce((sum, logProb) => sum + Math.exp(logProb - right), 0));
}
