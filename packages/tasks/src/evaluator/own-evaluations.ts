import * as z from "zod";
import { configError, parseOptions } from "@periodic-eval/contracts/options";
import type { AnyEvaluation, Row, Json } from "@periodic-eval/core";
import { callSamplingShape, type CallSampling } from "../families/evaluate-options.ts";
import { evaluateMethodOf, withSampling } from "../families/evaluate.ts";
import type { AnyFamily } from "../families/family.ts";
import type { ChosenTask } from "../suite/open-tasks.ts";
import type { SuiteDefinition } from "../suite/suite-file.ts";
import type { TaskRegistry } from "../tasks/registry.ts";
import type { SampledTask } from "../tasks/task.ts";

/** Tasks and custom evaluations: a list, or each under its name. */
export type EvaluatorTasks =
  | readonly (SampledTask | AnyEvaluation)[]
  | Readonly<Record<string, SampledTask | AnyEvaluation>>;

/** Returns the tasks by name, with each custom evaluation as a task. */
export const taskRegistry = (tasks: EvaluatorTasks): TaskRegistry =>
  Object.fromEntries(Object.values(tasks).map((task) => [task.name, "open" in task ? task : taskOf(task)]));

/** Returns a suite of all tasks with their default settings, in their order. */
export const suiteOfTasks = (tasks: EvaluatorTasks): SuiteDefinition => ({
  schema_version: 1,
  name: "tasks",
  tasks: Object.fromEntries(Object.values(tasks).map(({ name }) => [name, {}])),
});

/** Returns a custom evaluation as a task. It makes its own prompts, so it uses only `limit` and `subsample` of a suite's settings. */
function taskOf(evaluation: AnyEvaluation): SampledTask {
  const { name, version } = evaluation;
  return {
    name,
    version,
    defaultShots: 0,
    open({ limit, subsample, shots, chat, fewshotPool }) {
      const refused = { shots: shots === 0 ? undefined : shots, chat, fewshotPool };
      const [first] = Object.entries(refused).filter(([, value]) => value !== undefined);
      if (first !== undefined)
        throw configError({
          where: `${name} options`,
          path: [first[0]],
          value: first[1],
          expected: "nothing, because a custom evaluation makes its own prompts",
          fix: first[0] === "chat" ? "Write `chat: null` for it in the suite." : "Leave it out of the suite.",
        });
      const count = Math.min(limit ?? Infinity, subsample?.n ?? Infinity);
      return Number.isFinite(count) ? firstItems(evaluation, count) : evaluation;
    },
  };
}

/** Returns the evaluation of its first items; they come in the order in which a smaller subset takes them. */
function firstItems(evaluation: AnyEvaluation, count: number): AnyEvaluation {
  const { length, withSampling } = evaluation as Partial<AnyFamily>;
  const first: AnyEvaluation = {
    ...evaluation,
    ...(length && {
      length: async () => Math.min(await length(), count),
      evaluate: evaluateMethodOf(() => first),
    }),
    items: async (model: never) => ((await evaluation.items(model)) as readonly Row[]).slice(0, count),
    ...(withSampling && {
      withSampling: (...args: Parameters<typeof withSampling>) => firstItems(withSampling(...args), count),
    }),
  };
  return first;
}

const schema = z.strictObject(callSamplingShape);

export type SamplingInput = { readonly [Name in keyof CallSampling]: CallSampling[Name] | undefined };

/** Checks the sampling of a run, and leaves out undefined values; null for no options. */
export function readSampling(where: string, sampling: SamplingInput): CallSampling | null {
  parseOptions(`${where} options`, schema, sampling);
  const entries = Object.entries(sampling).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? null : Object.fromEntries(entries);
}

/**
 * Returns the tasks with the sampling of a run, which applies to the tasks that generate.
 *
 * @throws PeriodicEvalError `config` if no task generates, or one that does sets its own sampling.
 */
export function sampleTasks(
  where: string,
  tasks: readonly ChosenTask[],
  sampling: CallSampling | null,
): readonly ChosenTask[] {
  if (sampling === null) return tasks;
  const isGenerated = ({ needs }: AnyEvaluation) => (needs as readonly string[]).includes("generate");
  if (!tasks.some(({ evaluation }) => isGenerated(evaluation))) {
    const [name, value] = Object.entries(sampling)[0]!;
    throw configError({
      where: `${where} options`,
      path: [name],
      got: `${name} ${value} for tasks that do not generate (${tasks.map((task) => task.name).join(", ")})`,
      expected: "a suite with a task that generates, such as gsm8k",
      fix: "Leave it out.",
    });
  }
  return tasks.map((choice) => {
    if (!isGenerated(choice.evaluation)) return choice;
    const { task, evaluation } = choice;
    const settings = { ...task.settings, ...harnessNames(sampling) };
    return { ...choice, task: { ...task, settings }, evaluation: withSampling(where, evaluation, sampling) };
  });
}

/** Returns the sampling under the names of lm-evaluation-harness' generation settings. */
function harnessNames({ temperature, topP, maxNewTokens }: CallSampling): Readonly<Record<string, Json>> {
  return {
    ...(temperature !== undefined && { temperature, do_sample: temperature > 0 }),
    ...(topP !== undefined && { top_p: topP }),
    ...(maxNewTokens !== undefined && { max_gen_toks: maxNewTokens }),
  };
}
