import { defineEvaluation, type Row } from "@periodic-eval/core";
import { measureInBatches, nestedSubset } from "@periodic-eval/core/evaluations";
import { fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import type { TaskOptions } from "../tasks/task.ts";
import type { SampledTask } from "../tasks/task.ts";
import type { EvaluableTrainer } from "../evaluator/evaluator-options.ts";

interface Document extends Row {
  readonly subject: string;
  readonly category: string;
  readonly at: number;
  readonly question: string;
  readonly choices: readonly string[];
  readonly gold: number;
}

interface ChoiceRow extends Row {
  readonly subject: string;
  readonly category: string;
  readonly nats: readonly number[];
  readonly isCorrect: boolean;
  readonly isCorrectNorm: boolean;
}

const categories: Readonly<Record<string, string>> = {
  algebra: "stem",
  physics: "stem",
  law: "humanities",
};

/** Returns the first `limit` documents of each subject, or the subsample of these. */
function chosen<I extends { readonly subject: string }>(
  all: readonly I[],
  options: TaskOptions,
): readonly I[] {
  const { limit = null, subsample = null } = options;
  const seen = new Map<string, number>();
  const limited = all.filter(({ subject }) => {
    const before = seen.get(subject) ?? 0;
    seen.set(subject, before + 1);
    return limit === null || before < limit;
  });
  return subsample === null ? limited : nestedSubset(limited, subsample);
}

export interface FakeTaskOptions {
  readonly name?: string;
  /** Documents per subject. */
  readonly documents?: number;
  /** Runs before each call of the model. */
  readonly before?: (task: string) => unknown;
  /** Prefix of the documents: another edition has different documents. */
  readonly edition?: string;
}

/** A multiple-choice task with three subjects in two categories, similar to MMLU. */
export function choiceTask(given: FakeTaskOptions = {}): SampledTask {
  const { name = "choices", documents = 5, before, edition = "" } = given;
  const all = Object.entries(categories).flatMap(([subject, category], s) =>
    Array.from({ length: documents }, (_, at): Document => {
      const question = `${edition}What is ${subject} number ${at}?`;
      const choices = ["this", "that one", "an other"];
      return { id: `${subject}/${at}`, subject, category, at, question, choices, gold: (at + s) % 3 };
    }),
  );
  const context = ({ question }: Document) => ({ text: `${question}\nAnswer:` });
  return {
    name,
    version: "1.0",
    defaultShots: 0,
    open: (options) =>
      defineEvaluation({
        name,
        version: `${name}-1`,
        needs: ["logLikelihoods"],
        items: () => chosen(all, options),
        provenance: () => ({ shots: options.shots ?? 0 }),
        prompts: (_, items) => items.map(context),
        measure: (model, items, measuring) =>
          measureInBatches(
            items,
            measuring,
            async (some): Promise<readonly ChoiceRow[]> => {
              await before?.(name);
              const requests = some.flatMap((item) =>
                item.choices.map((choice) => ({ context: context(item), continuation: ` ${choice}` })),
              );
              const scores = await model.logLikelihoods(requests, { signal: measuring.signal });
              return some.map(({ id, subject, category, choices, gold }, i) => {
                const nats = choices.map((_, c) => scores[3 * i + c]!.sumNats);
                const best = (values: readonly number[]) => values.indexOf(Math.max(...values));
                const isCorrectNorm = best(nats.map((sum, c) => sum / choices[c]!.length)) === gold;
                return { id, subject, category, nats, isCorrect: best(nats) === gold, isCorrectNorm };
              });
            },
            2,
          ),
        metrics: ({ rate }) => {
          const by = ({ category, subject }: ChoiceRow) => [category, subject];
          return {
            acc: rate((row) => row.isCorrect, { higherIsBetter: true, by }),
            acc_norm: rate((row) => row.isCorrectNorm, { higherIsBetter: true, by }),
          };
        },
      }),
    sample: (row, item) => {
      const { at, question, choices, gold } = item as Document;
      const { nats } = row as ChoiceRow;
      return {
        docId: at,
        doc: { question, choices: [...choices], answer: gold },
        target: gold,
        arguments: choices.map((choice) => [context(item as Document).text, ` ${choice}`]),
        responses: nats.map((sum) => [[sum, false]]),
        filtered: { none: nats.map((sum) => [sum, false]) },
      };
    },
  };
}

interface ReplyRow extends Row {
  readonly reply: string;
  readonly strict: string | null;
  readonly flexible: string | null;
  readonly gold: string;
}

/** A generation task with two filters, similar to GSM8K. */
export function replyTask(given: FakeTaskOptions = {}): SampledTask {
  const { name = "replies", documents = 6, before, edition = "" } = given;
  const all = Array.from({ length: documents }, (_, at) => ({
    id: String(at),
    subject: "all",
    at,
    question: `${edition}How many letters has "${"word".repeat(at + 1)}"?`,
    gold: "aeiou"[at % 5]!,
  }));
  return {
    name,
    version: "3.0",
    defaultShots: 2,
    settings: { generation_kwargs: { until: ["\n"], do_sample: false, temperature: 0 } },
    open: (options) =>
      defineEvaluation({
        name,
        version: `${name}-3`,
        needs: ["generate"],
        items: () => chosen(all, options),
        provenance: () => ({ shots: options.shots ?? 2, chat: options.chat ? { ...options.chat } : null }),
        measure: (model, items, measuring) =>
          measureInBatches(
            items,
            measuring,
            async (some): Promise<readonly ReplyRow[]> => {
              await before?.(name);
              const requests = some.map(({ id, question }) => ({
                prompt: { text: question },
                sampling: { maxNewTokens: 8, temperature: 0, seed: id },
              }));
              const replies = await model.generate(requests, { signal: measuring.signal });
              return some.map(({ id, gold }, i) => {
                const reply = replies[i]!.text;
                return {
                  id,
                  gold,
                  reply,
                  strict: reply[0] ?? null,
                  flexible: /[aeiou]/.exec(reply)?.[0] ?? null,
                };
              });
            },
            2,
          ),
        metrics: ({ rate }) => ({
          "exact_match,strict-match": rate((row) => row.strict === row.gold, { higherIsBetter: true }),
          "exact_match,flexible-extract": rate((row) => row.flexible === row.gold, { higherIsBetter: true }),
        }),
      }),
    sample: (row, item) => {
      const { at, question, gold } = item as (typeof all)[number];
      const { reply, strict, flexible } = row as ReplyRow;
      return {
        docId: at,
        doc: { question, answer: gold },
        target: gold,
        arguments: [[question, { until: ["\n"], do_sample: false }]],
        responses: [[reply]],
        filtered: { "strict-match": [strict ?? "[invalid]"], "flexible-extract": [flexible ?? "[invalid]"] },
      };
    },
  };
}

/** A fake trainer whose fingerprint of the weights is the given word. */
export function fakeTrainer(
  weights = "w",
  adapter: string | null = null,
  contextLength: number | null = null,
): EvaluableTrainer {
  const identity = { name: "tiny", adapter };
  const evaluableModel = fakeModel({ weights: () => weights, identity, contextLength });
  return { evaluableModel, modelFingerprint: () => weights };
}

export const otherTokenizerTrainer = (): EvaluableTrainer => {
  const tokenizer = { ...fakeTokenizer(), fingerprint: "another" };
  const evaluableModel = fakeModel({ tokenizer, weights: () => "w", identity: { name: "tiny" } });
  return { evaluableModel, modelFingerprint: () => "w" };
};

/** A suite with the two fake tasks. */
export const suiteText = `schema_version: 1
name: small
tasks:
  choices: { shots: 1, limit: 4 }
  replies: {}
`;
