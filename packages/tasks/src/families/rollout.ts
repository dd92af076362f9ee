import {
  PeriodicEvalError,
  type Awaitable,
  type Json,
  type Metric,
  type MetricKit,
  type Prompt,
  type Row,
} from "@periodic-eval/core";
import { hashJson, seedOf } from "@periodic-eval/core/random";
import { checkWord, isCount, quoteValue } from "@periodic-eval/core/internal";
import { resolveSampling, measureInBatches } from "@periodic-eval/core/evaluations";
import {
  familyParts,
  promptOf,
  type Asked,
  type Family,
  type FamilyItem,
  type FamilyOptions,
  type FamilyRow,
} from "./family.ts";
import { firstText, fitPrompt, promptBudget } from "./fit-prompt.ts";
import { sequenceOf } from "./token-sequence.ts";

export interface RolloutItem<D> extends FamilyItem<D> {
  readonly prompt: Prompt;
}

/** One completion. Its id is the document's and, behind a `#`, the number of the sample from 0. */
export interface RolloutRow extends FamilyRow {
  readonly sample: number;
  /** `overflow`: the prompt leaves no room for `maxNewTokens`. `template_failure`: it could not be rendered. Neither was asked. */
  readonly status: "generated" | "overflow" | "template_failure";
  /** Null where nothing was asked. */
  readonly text: string | null;
  /** `length`: it was cut off at `maxNewTokens`, or the model's window. */
  readonly finish: "stop" | "length" | null;
  /** Null where the model shows no tokenizer. */
  readonly promptTokens: number | null;
  /** Tokens of the prompt cut on the left, with `overflow: "left"`. */
  readonly truncatedTokens: number;
  /** Why it was not asked. */
  readonly reason?: string;
}

/** A completion with what `clean` and `check` or `score` made of it; null where there is none. */
export interface ScoredRolloutRow<S extends Json = Json> extends RolloutRow {
  readonly cleaned: string | null;
  readonly score: S | null;
}

interface RolloutBase<D extends Row> extends FamilyOptions<D> {
  /** What is asked: a text, or a prompt (a chat, ids). */
  readonly prompt: (document: D) => Asked;
  /** The prompt's budget is the model's context length less these. */
  readonly maxNewTokens: number;
  /** Default 0: greedy. */
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  /** The completion ends before the first of these strings. */
  readonly stop?: readonly string[];
  /** Completions of each prompt, rows of their own; default 1. */
  readonly samplesPerPrompt?: number;
  /**
   * What happens to a prompt over its budget. `report` (default): it is not asked, and its rows say so; `left`: it is cut on
   * the left, as lm-evaluation-harness does, and its rows say by how much.
   */
  readonly overflow?: "report" | "left";
  /** What of the completion is checked; default all of it. */
  readonly clean?: (text: string, document: D) => string;
}

interface Checking<D extends Row> {
  /** Whether the answer is right; null leaves it out. */
  readonly check: (document: D, cleaned: string) => Awaitable<boolean | null>;
  readonly score?: undefined;
}

interface Scoring<D extends Row, S extends Json> {
  /** A number, or what `metrics` makes numbers of; null leaves it out. */
  readonly score: (document: D, cleaned: string) => Awaitable<S | null>;
  readonly check?: undefined;
}

export type RolloutOptions<D extends Row, S extends Json = boolean> = RolloutBase<D> & {
  /** In place of the one metric `accuracy` (of `check`) or `score`. */
  readonly metrics?: (
    kit: MetricKit<ScoredRolloutRow<S>>,
  ) => Readonly<Record<string, Metric<ScoredRolloutRow<S>>>>;
} & (Checking<D> | Scoring<D, S>);

/** Documents asked in one call, of `measureInBatches`. */
const documentsPerCall = 16;

const ownOptions = [
  "prompt",
  "maxNewTokens",
  "temperature",
  "topP",
  "topK",
  "stop",
  "samplesPerPrompt",
  "overflow",
  "clean",
  "check",
  "score",
  "metrics",
];

/**
 * Lets the model write, and checks what it wrote: generate → `clean` → `check` or `score`. What is written is kept in the
 * rows; cleaning and scoring are its `grade`, beside training and without the model. Where prompts are sampled, looks
 * are compared within each document.
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
 * @throws PeriodicEvalError `config` for a wrong option; before step 1 also for a model whose context is not longer than
 *   `maxNewTokens`, and `model` where no prompt can be asked.
 */
export function rolloutEvaluation<D extends Row, S extends Json = boolean>(
  options: RolloutOptions<D, S>,
): Family<D, RolloutItem<D>, RolloutRow, "generate", ScoredRolloutRow<S>> {
  const parts = familyParts("rolloutEvaluation", options, ownOptions);
  checkRollout(options);
  const { maxNewTokens, temperature = 0, topP, topK, stop } = options;
  const { samplesPerPrompt: samples = 1, overflow = "report", clean = (text: string) => text } = options;
  const score = options.check ?? options.score;
  const given = Object.entries({ temperature, topP, topK, stop }).filter(([, value]) => value !== undefined);
  const sampling = resolveSampling("rolloutEvaluation", Object.fromEntries(given), {
    maxNewTokens,
    temperature,
  });
  let provenance: Json = null;
  return {
    name: parts.name,
    version: parts.version,
    length: parts.length,
    needs: ["generate"],
    wants: ["tokenizer"],
    samplesPerItem: samples,
    async items(model) {
      const items = (await parts.items()).map((item) => ({
        ...item,
        prompt: promptOf(options.prompt(item.document)),
      }));
      const budget = promptBudget(parts.name, model, maxNewTokens);
      const example = firstText(parts.name, model, items, { budget, overflow });
      const how = {
        sampling: { ...sampling } as Json,
        samples,
        overflow,
        prompt_budget: budget,
      };
      provenance = parts.provenance(how, example);
      return items;
    },
    provenance: () => provenance,
    prompts: (_, items) => items.map(({ prompt }) => prompt),
    measure(model, items, context, tell) {
      const fitting = { budget: promptBudget(parts.name, model, maxNewTokens), overflow };
      const ask = async (some: readonly RolloutItem<D>[]) => {
        const ready = some.map(({ id, groups, prompt }) => {
          return { item: id, groups, fitted: fitPrompt(model, prompt, fitting) };
        });
        const requests = ready.flatMap(({ fitted }) => {
          if ("reason" in fitted) return [];
          const { prompt } = fitted;
          // Named by prompt and sample alone, so that evaluations of one step that ask the same share completions.
          const name = hashJson(prompt as Json);
          return Array.from({ length: samples }, (_, sample) => {
            return { prompt, sampling: { ...sampling, seed: seedOf(context.seed, name, sample) } };
          });
        });
        const written = (await model.generate(requests, { signal: context.signal })).values();
        return ready.flatMap(({ item, groups, fitted }) =>
          Array.from({ length: samples }, (_, sample): RolloutRow => {
            const row = { id: `${item}#${sample}`, item, groups, sample };
            if ("reason" in fitted) return { ...row, ...unasked, ...fitted };
            const { text, finish, ids } = written.next().value!;
            if (ids !== null && fitted.ids !== null) tell?.(row.id, sequenceOf(fitted.ids, ids));
            const promptTokens = fitted.ids?.length ?? null;
            const { truncatedTokens } = fitted;
            return { ...row, status: "generated", text, finish, promptTokens, truncatedTokens };
          }),
        );
      };
      return measureInBatches(items, context, ask, documentsPerCall);
    },
    async grade(rows, { signal }) {
      const scored: ScoredRolloutRow<S>[] = [];
      for (const row of rows) {
        signal.throwIfAborted();
        const document = await parts.documentOf(row.item);
        const cleaned = row.text === null ? null : clean(row.text, document);
        const value: unknown = cleaned === null ? null : await score(document, cleaned);
        checkScore(row.id, value, options.check === undefined);
        scored.push({ ...row, cleaned, score: value as S | null });
      }
      return scored;
    },
    metrics: (kit) => {
      const item = ({ item: id }: FamilyRow) => id;
      const drawn = temperature === 0 ? {} : { sampled: true, item, ...(samples > 1 && { cluster: item }) };
      return parts.metrics(kit, drawn, options.metrics ?? ownMetric(options.check === undefined));
    },
    plainKeys(_, rows) {
      const count = (is: (row: ScoredRolloutRow<S>) => boolean) => rows.filter(is).length;
      return {
        num_samples: count(({ status }) => status === "generated"),
        scored: count(({ score: value }) => value !== null),
        overflows: count(({ status }) => status === "overflow"),
        template_failures: count(({ status }) => status === "template_failure"),
        truncated: count(({ truncatedTokens }) => truncatedTokens > 0),
        at_max_new_tokens: count(({ finish }) => finish === "length"),
      };
    },
  };
}

const ownMetric =
  (isScore: boolean) =>
  <S extends Json>({ rate, mean }: MetricKit<ScoredRolloutRow<S>>) =>
    isScore
      ? { score: mean(numberOf, { higherIsBetter: true }) }
      : { accuracy: rate((row) => row.score as boolean | null, { higherIsBetter: true }) };

const unasked = { text: null, finish: null, truncatedTokens: 0 };

/** A function that forgets to return, or gives words for right and wrong, would count as one that says no. */
function checkScore(id: string, value: unknown, isScore: boolean): void {
  if (value === null || (isScore ? value !== undefined : typeof value === "boolean")) return;
  throw new PeriodicEvalError({
    code: "config",
    where: `rolloutEvaluation.${isScore ? "score" : "check"} of row "${id}"`,
    got: quoteValue(value),
    expected: isScore ? "a number, or null" : "true, false or null",
    fix: isScore
      ? "Return what is scored; null leaves the answer out."
      : "Return whether the answer is right.",
  });
}

function numberOf({ id, score }: ScoredRolloutRow): number | null {
  if (score === null || typeof score === "number") return score;
  if (typeof score === "boolean") return score ? 1 : 0;
  throw new PeriodicEvalError({
    code: "config",
    where: `rolloutEvaluation.score of row "${id}"`,
    got: quoteValue(score),
    expected: "a number, true, false or null, where `metrics` does not say what is made of it",
    fix: "Give `metrics`, which turns rows into numbers.",
  });
}

function checkRollout<D extends Row, S extends Json>(options: RolloutOptions<D, S>): void {
  const { maxNewTokens, temperature = 0, samplesPerPrompt = 1, overflow, check, score } = options;
  const refuse = (option: string, got: string, expected: string, fix: string) => {
    const where = `rolloutEvaluation.${option}`;
    throw new PeriodicEvalError({ code: "config", where, got, expected, fix });
  };
  const count = "a whole number of 1 or more";
  if (!isCount(maxNewTokens, 1))
    refuse("maxNewTokens", quoteValue(maxNewTokens), count, "Say how long a completion may get.");
  if (!isCount(samplesPerPrompt, 1))
    refuse("samplesPerPrompt", quoteValue(samplesPerPrompt), count, "Leave it out for 1.");
  if (samplesPerPrompt > 1 && temperature === 0) {
    const fix = "Raise the temperature: greedy completions of a prompt are all the same.";
    refuse("samplesPerPrompt", `${samplesPerPrompt} at temperature 0`, "1 at temperature 0", fix);
  }
  if (overflow !== undefined) checkWord("rolloutEvaluation.overflow", overflow, ["report", "left"]);
  if (typeof options.prompt !== "function")
    refuse("prompt", quoteValue(options.prompt), "a function of a document", "Give the text of a document.");
  if ((check === undefined) === (score === undefined)) {
    const got = `${check === undefined ? "neither" : "both"} check and score`;
    refuse("check", got, "one of them", "Give `check` for right or wrong, else `score`.");
  }
}
