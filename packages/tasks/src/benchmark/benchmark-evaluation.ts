import {
  defineEvaluation,
  type PeriodicEvalError,
  type AnswerFields,
  type Json,
  type MeasureContext,
  type Prompt,
} from "@periodic-eval/core";
import type { JudgePrice } from "@periodic-eval/core/grading";
import {
  configError,
  dataError,
  didYouMean,
  errorMessage,
  judgeError,
  parseOptions,
  shortMessage,
  modelError,
} from "@periodic-eval/contracts/options";
import { measureInBatches, nestedSubset } from "@periodic-eval/core/evaluations";
import * as z from "zod";
import { engineFacts, openEngine, type CompletionModel } from "./engine.ts";
import { chatOf, completeOptions, type BenchmarkOptions, type CompleteOptions } from "./benchmark-options.ts";
import { readBenchmark, type Benchmark } from "./folder.ts";
import { generateFor, renderChats, tasksPerCall, type RenderedChats } from "./generate.ts";
import { gradeTasks } from "./grade.ts";
import { defineMetrics } from "./benchmark-metrics.ts";
import {
  splits,
  type AnsweredTaskRow,
  type BenchmarkRow,
  type BenchmarkTask,
  type Split,
} from "./benchmark-task.ts";
import { sumOfKnown } from "../families/evaluate.ts";
import { idsText, runUserCode } from "../families/hooks.ts";
import { openVerifiers } from "./verifiers/open-verifiers.ts";

/** Seed of the order of tasks: a budget measures the first of them. */
const orderSeed = 42;

interface BenchmarkItem extends Omit<BenchmarkTask, "messages"> {
  readonly chat: Extract<Prompt, { readonly messages: unknown }>;
}

/**
 * Measures one split of a custom benchmark: sends each task as a chat, and checks its completions with the task's verifier. A row
 * is a task with its prompt, `numSamples` completions, their rewards, whether they passed and why not. Intervals and comparisons
 * are over tasks.
 *
 * The snapshot's top level has the benchmark's name and version, the split, the number of completions without a grade
 * (`ungraded`) and of those cut off (`truncated`), and `usage`: tokens, and the cost if `price` is set. With a custom
 * `engine` it also has the engine's name and its weights at the time of the measurement (`engine`, `engine_weights`). The
 * provenance has the rest of the identity.
 *
 * @throws PeriodicEvalError `config` for a wrong option; before step 1 `data`, with file and line, for a wrong folder, and `model`
 *   for a task that the chat template does not render.
 */
export function benchmarkEvaluation(options: BenchmarkOptions, split: Split = "val") {
  parseOptions("benchmark split", z.enum(splits), split);
  const complete = completeOptions("benchmark options", options);
  const { name, benchmark: folder, numSamples, maxTokens, temperature, limit } = complete;
  const verifiers = openVerifiers(folder);
  const engine = complete.engine === null ? null : openEngine(complete.engine);
  let benchmark: Benchmark | null = null;
  let provenance: Json = null;

  return defineEvaluation({
    name,
    version: "benchmark-1",
    // An engine writes in place of the model.
    needs: engine === null ? ["generate"] : [],
    wants: engine === null ? ["tokenizer"] : [],
    async items(model): Promise<readonly BenchmarkItem[]> {
      benchmark = await readBenchmark(folder, verifiers);
      const tasks = tasksOf(benchmark, folder, complete, split);
      const items = nestedSubset(tasks, { n: null, seed: orderSeed }).map(
        ({ messages, ...task }): BenchmarkItem => ({
          ...task,
          chat: chatOf(messages, complete.chatTemplate),
        }),
      );
      const shortOfRoom = await checkRoom(engine ?? model, items, { maxTokens, places: benchmark.places });
      provenance = {
        benchmark: { name: benchmark.name, version: benchmark.version, hashes: benchmark.hashes },
        verifiers: benchmark.verifiers,
        ...(engine !== null && { engine: engineFacts(engine) }),
        split,
        chat_template: { ...complete.chatTemplate },
        sampling: { max_tokens: maxTokens, temperature },
        num_samples: numSamples,
        short_of_room: shortOfRoom,
        subsample: { limit, seed: orderSeed },
      };
      return items;
    },
    provenance: () => provenance,
    async check(call) {
      await engine?.check?.(call);
      await verifiers.check(call);
    },
    prompts: (_, items) => items.map(({ chat }) => chat),
    async measure(model, items, context) {
      const rendered = await renderChats(
        engine ?? model,
        items.map(({ chat }) => chat),
      );
      const answer = (some: readonly BenchmarkItem[]) =>
        answerTasks(model, some, { ...complete, rendered }, engine, context);
      return measureInBatches(items, context, answer, tasksPerCall(complete));
    },
    grade: (rows: readonly AnsweredTaskRow[], call): Promise<readonly BenchmarkRow[]> =>
      gradeTasks(rows, { verifiers, nConcurrent: complete.nConcurrent }, call),
    failure: (rows) => failureOf(rows, complete),
    answers: answerFields,
    metrics: (kit) => defineMetrics(complete, kit),
    plainKeys: (_, rows) => ({
      benchmark: benchmark?.name ?? null,
      benchmark_version: benchmark?.version ?? null,
      benchmark_id: complete.benchmarkId ?? name,
      run_id: complete.runId,
      model_name: complete.modelName,
      ...(engine !== null && { engine: engine.identity.name, engine_weights: engineWeightsOf(rows) }),
      split,
      num_tasks: rows.length,
      num_samples: numSamples,
      ungraded: rows.flatMap(({ rewards }) => rewards).filter((reward) => reward === null).length,
      truncated: truncatedOf(rows),
      usage: usageOf(rows, complete.price),
    }),
  });
}

function tasksOf(
  { tasks }: Benchmark,
  folder: string,
  { limit, breakdownKeys }: CompleteOptions,
  split: Split,
): readonly BenchmarkTask[] {
  const ofSplit = tasks.filter((task) => task.split === split);
  if (ofSplit.length === 0) {
    const fix = `Add "split": "${split}" to lines of tasks.jsonl${split === "val" ? ", or set runEvery to 0" : ""}.`;
    throw dataError(folder, `no tasks of the split ${split}`, "at least one", fix);
  }
  const keys = [...new Set(ofSplit.flatMap(({ metadata }) => Object.keys(metadata)))];
  for (const [at, key] of breakdownKeys.entries()) {
    if (keys.includes(key)) continue;
    throw configError({
      where: "benchmark options",
      path: ["breakdownKeys", at],
      got: `"${key}", which no task of the split ${split} has in its metadata`,
      expected:
        keys.length === 0 ? "no keys, because the tasks have no metadata" : `some of ${keys.join(", ")}`,
      fix: didYouMean(key, keys) ?? "Remove it, or add it to the tasks.",
    });
  }
  return ofSplit.slice(0, limit ?? ofSplit.length);
}

/**
 * Renders every task, so that tasks that cannot be rendered are reported before step 1. Returns how many prompts leave less room
 * than `maxTokens` (no prompt is cut); null if the model's context length or a prompt's length is unknown.
 */
async function checkRoom(
  model: Pick<CompletionModel, "contextLength">,
  items: readonly BenchmarkItem[],
  { maxTokens, places }: { readonly maxTokens: number; readonly places: Benchmark["places"] },
): Promise<number | null> {
  const { contextLength } = model;
  const chats = items.map(({ chat }) => chat);
  const rendered = await renderChats(model, chats);
  const lengths = items.map(({ id, chat }) => {
    const result = rendered.get(chat);
    if (result?.status !== "rejected") return result?.value.ids.length ?? null;
    throw modelError(
      places.get(id)!,
      `a chat template that fails (${errorMessage(result.reason)})`,
      "a template that renders the task",
      "Change the chatTemplate's systemPrompt, or the messages of the task.",
      result.reason,
    );
  });
  if (contextLength === null || lengths.includes(null)) return null;
  const longest = Math.max(...(lengths as number[]));
  if (longest > contextLength)
    throw dataError(
      places.get(items[lengths.indexOf(longest)]!.id)!,
      `a prompt of ${longest} tokens`,
      `at most ${contextLength}, the model's context length`,
      "Shorten the task, or use a model with a longer context.",
    );
  return lengths.filter((length) => length! + maxTokens > contextLength).length;
}

/** Returns the rows that the model answered, or the engine in its place. */
async function answerTasks(
  model: Pick<CompletionModel, "generate">,
  items: readonly BenchmarkItem[],
  how: CompleteOptions & { readonly rendered: RenderedChats },
  engine: CompletionModel | null,
  context: MeasureContext,
): Promise<readonly AnsweredTaskRow[]> {
  const ask = () => generateFor(engine ?? model, items, how, context);
  const location = `benchmark "${how.name}", tasks ${idsText(items.map(({ id }) => id))}`;
  const name = `engine "${engine?.identity.name}"`;
  const call = { location, name, code: "model", signal: context.signal } as const;
  const written = engine === null ? await ask() : await runUserCode(call, ask);
  // Training continues while rows are graded, so the weights may be others by then.
  const weights = engine && { engineWeights: engine.identity.weights };
  return items.map(({ id, chat, answer, verifier, metadata }) => ({
    id,
    prompt: chat.messages,
    answer,
    verifier,
    metadata,
    completions: written.get(id)!,
    ...weights,
  }));
}

/** Returns the weights that answered; null if the engine does not report them, or if they changed between tasks. */
function engineWeightsOf(rows: readonly BenchmarkRow[]): string | null {
  const [first = null, ...rest] = new Set(rows.map(({ engineWeights = null }) => engineWeights));
  return rest.length === 0 ? first : null;
}

function failureOf(
  rows: readonly BenchmarkRow[],
  { maxErrorShare }: CompleteOptions,
): PeriodicEvalError | null {
  const verdicts = rows.flatMap(({ rewards, verdicts: ofRow }) =>
    rewards.map((reward, at) => ({ reward, verdict: ofRow[at]! })),
  );
  const ungraded = verdicts.filter(({ reward }) => reward === null);
  if (ungraded.length <= maxErrorShare * verdicts.length) return null;
  const { raw } = ungraded[0]!.verdict;
  return judgeError(
    "verifiers",
    `no grade for ${ungraded.length} of ${verdicts.length} completions (one of them: ${shortMessage(raw ?? "no reason")})`,
    `at most ${100 * maxErrorShare} %`,
    "Check the rows' `verdicts`: a verifier should return false for a failed completion, and throw only if it cannot grade.",
  );
}

/** Returns how many completions were cut off; null if an engine does not say of each whether it was. */
function truncatedOf(rows: readonly BenchmarkRow[]): number | null {
  const all = rows.flatMap(({ completions }) => completions);
  return all.some(({ finish }) => finish === null)
    ? null
    : all.filter(({ finish }) => finish === "length").length;
}

/**
 * Returns the tokens and cost of the completions. `unknown` counts completions of which neither server nor tokenizer reports both
 * counts; the cost is then null. Each count covers the completions that report it, and is null without any.
 */
function usageOf(rows: readonly BenchmarkRow[], price: JudgePrice | null): { readonly [key: string]: Json } {
  const all = rows.flatMap(({ completions }) => completions);
  const inputTokens = sumOfKnown(all.map((reply) => reply.inputTokens));
  const outputTokens = sumOfKnown(all.map((reply) => reply.outputTokens));
  const unknown = all.filter((reply) => reply.inputTokens === null || reply.outputTokens === null).length;
  return {
    completions: all.length,
    unknown,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    cost:
      price === null || unknown > 0
        ? null
        : (inputTokens! * price.inputPerMillion + outputTokens! * price.outputPerMillion) / 1e6,
  };
}

/** The fields of a row that the page shows. */
const answerFields: AnswerFields = {
  question: "prompt",
  answer: "completions.text",
  reply: "verdicts.raw",
  grades: ["rewards"],
  flags: [
    { name: "wrong", any: [{ passed: { is: [false] } }] },
    { name: "ungraded", any: [{ rewards: { is: [null] } }] },
    { name: "truncated", any: [{ "completions.finish": { is: ["length"] } }] },
  ],
  tokens: { prompt: "completions.inputTokens", generated: "completions.outputTokens" },
};
