import * as z from "zod";
import { parseOptions } from "@periodic-eval/contracts/options";
import { defineEvaluation, type Json, type MetricKit, type MetricValue } from "@periodic-eval/core";
import {
  samplingSchema,
  completionFields,
  resolveSampling,
  measureInBatches,
  promptTexts,
  renderItems,
  sampleCompletions,
  truncatedFlag,
  type CompletionItem,
  type CompletionRow,
  type SamplingOptions,
} from "@periodic-eval/core/evaluations";
import { readNamedFile } from "../config/file-errors.ts";
import { saysOneOf } from "../graders/shipped.ts";
import { runInSandbox, type SandboxResult } from "../sandbox/run-in-sandbox.ts";

export interface GeneralOptions {
  /** Questions instead of the coding task and the instructions, for a model that knows neither. */
  readonly questions?: readonly GeneralQuestion[];
  /** Default: greedy, 256 tokens. */
  readonly sampling?: Partial<SamplingOptions>;
}

export interface GradedGeneralRow extends CompletionRow {
  /** From 0 to 1. An answer whose thinking does not end scores 0. */
  readonly score: number;
  /** The reason for a score below 1. */
  readonly raw: string | null;
}

const optionsSchema = z.strictObject({
  questions: z.custom<GeneralOptions["questions"]>(Array.isArray, "an array of questions").optional(),
  sampling: samplingSchema.optional(),
} satisfies Record<keyof GeneralOptions, z.ZodType>);

/**
 * Measures whether a model keeps its general ability. `general`, the primary metric, is the mean of two scores: that of a coding
 * task, whose code runs in a sandbox, and the mean over three instructions that a program checks. Four answers can show only a
 * large loss; `@periodic-eval/tasks` has benchmarks for small ones. With `questions`, both `general` and `instructions` are the
 * share of right answers, and `coding` is null.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function generalEvaluation(options: GeneralOptions = {}) {
  parseOptions("general options", optionsSchema, options);
  const sampling = resolveSampling("general options.sampling", options.sampling, {
    maxNewTokens: 256,
    temperature: 0,
  });
  const probes = options.questions?.map(probeOf) ?? generalProbes;
  const codingIds = probes.filter(({ kind }) => kind === "coding").map(({ id }) => id);
  const isCoding = ({ item }: CompletionRow): boolean => codingIds.includes(item);
  const items: readonly CompletionItem[] = probes.map(({ id, prompt }) => ({
    id,
    question: prompt,
    persona: null,
    prompt: { messages: [{ role: "user", content: prompt }] },
  }));
  const instructions = probes.length - codingIds.length;
  let provenance: Json = null;
  return defineEvaluation({
    name: "general",
    version: "general-1",
    needs: ["generate"],
    wants: ["tokenizer"],
    async items(model) {
      provenance = {
        prompts: items.map(({ question }) => question),
        sampling: { ...sampling },
        example_prompt: await renderItems(model, items, "general"),
      };
      return items;
    },
    provenance: () => provenance,
    async measure(model, asked, context) {
      const how = { samples: 1, sampling, stripThinking: true, prompts: await promptTexts(model, asked) };
      return measureInBatches(asked, context, (some) => sampleCompletions(model, some, how, context));
    },
    prompts: (_, asked) => asked.map(({ prompt }) => prompt),
    async grade(rows: readonly CompletionRow[], { signal }): Promise<readonly GradedGeneralRow[]> {
      const graded: GradedGeneralRow[] = [];
      for (const row of rows) {
        signal.throwIfAborted();
        const probe = probes.find(({ id }) => id === row.item)!;
        const verdict =
          row.answer === null ? { score: 0, raw: "the thinking did not end" } : await probe.score(row.answer);
        graded.push({ ...row, ...verdict });
      }
      return graded;
    },
    answers: { ...completionFields, reply: "raw", grades: ["score"], flags: [truncatedFlag] },
    metrics: ({ mean, ratio }: MetricKit<GradedGeneralRow>) => {
      const weight = (row: GradedGeneralRow) => (isCoding(row) ? instructions : 1);
      const share = { unit: "share", range: [0, 1], higherIsBetter: true } as const;
      return {
        general: ratio((row) => [weight(row) * row.score, weight(row)], { ...share, primary: true }),
        coding: mean((row) => (isCoding(row) ? row.score : null), share),
        instructions: mean((row) => (isCoding(row) ? null : row.score), share),
      };
    },
    plainKeys: (_: Readonly<Record<string, MetricValue>>, rows: readonly GradedGeneralRow[]) => ({
      failures: Object.fromEntries(rows.flatMap(({ item, raw }) => (raw === null ? [] : [[item, raw]]))),
    }),
  });
}

/** Returns the general score divided by the baseline's; null if either is unknown or the baseline's is 0. */
export const capabilityRatio = (now: number | null, baseline: number | null): number | null =>
  now === null || baseline === null || baseline === 0 ? null : now / baseline;

/** A prompt that tests general ability, with its scorer. */
interface GeneralProbe {
  readonly id: string;
  readonly kind: "coding" | "instruction";
  readonly prompt: string;
  /** Returns a score from 0 to 1, and the reason if it is below 1. */
  score(answer: string): Promise<{ readonly score: number; readonly raw: string | null }>;
}

/** Calls of the requested function, with their correct results. */
const fibonacci: readonly (readonly [call: string, value: number])[] = [
  ["fibonacci(0)", 0],
  ["fibonacci(1)", 1],
  ["fibonacci(2)", 1],
  ["fibonacci(7)", 13],
  ["fibonacci(20)", 6765],
];

/** Returns the code of an answer, without `export`: its last fenced block, or the whole answer if it has none. */
export function codeOf(answer: string): string {
  const blocks = [...answer.matchAll(/```[^\n`]*\n(.*?)(?:```|$)/gs)];
  return (blocks.at(-1)?.[1] ?? answer).replaceAll(
    /^export\s+(?:default\s+)?(?=(?:async\s+)?function|const|let|var|class)/gm,
    "",
  );
}

const scoreOf = (result: SandboxResult): { score: number; raw: string | null } => {
  if (!result.ok) return { score: 0, raw: result.reason };
  const wrong = fibonacci.flatMap(([call, value], at) =>
    Object.is(result.values[at], value) ? [] : [`${call} is ${String(result.values[at])}, not ${value}`],
  );
  return { score: 1 - wrong.length / fibonacci.length, raw: wrong[0] ?? null };
};

const instruction = (id: string, prompt: string, fault: (answer: string) => string | null): GeneralProbe => ({
  id,
  kind: "instruction",
  prompt,
  async score(answer) {
    const raw = fault(answer.trim());
    return { score: raw === null ? 1 : 0, raw };
  },
});

/** One coding task, whose code runs in the sandbox, and three instructions that a program can check. */
export const generalProbes: readonly GeneralProbe[] = [
  {
    id: "fibonacci",
    kind: "coding",
    prompt:
      "Write a function fibonacci(n) in JavaScript that returns the nth Fibonacci number, where fibonacci(0) is 0 and " +
      "fibonacci(1) is 1. Answer with the code alone.",
    score: async (answer) =>
      scoreOf(
        await runInSandbox(
          codeOf(answer),
          fibonacci.map(([call]) => call),
        ),
      ),
  },
  instruction(
    "three_lines",
    "Name three fruits. Write each on a line of its own that begins with a dash, and nothing else.",
    (answer) => {
      const lines = answer.split("\n").filter((line) => line.trim() !== "");
      if (lines.length !== 3) return `${lines.length} lines`;
      return lines.every((line) => /^- ?\p{L}/u.test(line.trim())) ? null : "a line without a dash";
    },
  ),
  instruction("capitals", "What is the opposite of hot? Answer in capital letters only.", (answer) => {
    if (!/\p{L}/u.test(answer)) return "no letter";
    return /\p{Ll}/u.test(answer) ? "small letters" : null;
  }),
  instruction("last_word", "Write one sentence about the sea. Its last word must be blue.", (answer) =>
    /(?<!\p{L})blue["'”*]*(?:[.!]["'”*]*)?$/iu.test(answer)
      ? null
      : `the end ${JSON.stringify(answer.slice(-20))}`,
  ),
];

/** A question that shows general ability, with the words of a right answer. */
export interface GeneralQuestion {
  readonly prompt: string;
  /** The answer is right if it contains one of these strings as whole words, in any case. */
  readonly says: readonly string[];
}

/** Minimum number of questions: with fewer, one answer decides whether 0.8 of the ability is left. */
const minQuestions = 8;

const text = z.string("a non-empty string").refine((value) => value.trim() !== "", "a non-empty string");
const saysRule = "a string, or a non-empty array of strings";
const question = z.strictObject(
  {
    prompt: text,
    says: z.union([text.transform((phrase) => [phrase]), z.array(text).min(1)], saysRule),
  } satisfies Record<keyof GeneralQuestion, z.ZodType>,
  "an object with prompt and says",
);
const schema = z.strictObject(
  {
    questions: z
      .array(question, "an array of questions")
      .min(minQuestions, `at least ${minQuestions} questions`),
  },
  "an object with questions",
);

/**
 * Reads questions from a YAML file `{ questions: [{ prompt, says }] }`.
 *
 * @param where The configuration key of the path, for errors.
 * @throws PeriodicEvalError `config` for a missing file, or with file and line for wrong content.
 */
export async function readGeneralQuestions(
  path: string,
  where = "general_probes",
): Promise<readonly GeneralQuestion[]> {
  const expected = "a YAML file { questions: [{ prompt, says }] }";
  return (await readNamedFile(path, schema, { where, expected })).questions;
}

/** Returns a probe that scores 1 for an answer with the right words, and 0 for any other. */
function probeOf({ prompt, says }: GeneralQuestion, at: number): GeneralProbe {
  const isRight = saysOneOf(says, true);
  return {
    id: `question_${at}`,
    kind: "instruction",
    prompt,
    score: async (answer) =>
      isRight(answer) === 1
        ? { score: 1, raw: null }
        : { score: 0, raw: `not ${says.join(" or ")}: ${JSON.stringify(answer.slice(0, 60))}` },
  };
}
