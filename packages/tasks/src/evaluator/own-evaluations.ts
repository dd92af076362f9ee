import type { AnyEvaluation, Row } from "@periodic-eval/core";
import { configError } from "@periodic-eval/contracts/options";
import { evaluateMethodOf } from "../families/evaluate.ts";
import type { AnyFamily } from "../families/family.ts";
import type { TaskRegistry } from "../tasks/registry.ts";
import type { SuiteDefinition } from "../suite/suite-file.ts";
import type { SampledTask } from "../tasks/task.ts";

/** Tasks and custom evaluations: a list, or each under its name. */
export type EvaluatorTasks =
  | readonly (SampledTask | AnyEvaluation)[]
  | Readonly<Record<string, SampledTask | AnyEvaluation>>;

/** Returns the tasks by name, with each custom evaluation as a task. */
export const taskRegistry = (tasks: EvaluatorTasks): TaskRegistry =>
  Object.fromEntries(Object.values(tasks).map((one) => [one.name, "open" in one ? one : taskOf(one)]));

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
      withSampling: (...given: Parameters<typeof withSampling>) => firstItems(withSampling(...given), count),
    }),
  };
  return first;
}
