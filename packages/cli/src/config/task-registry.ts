import type { EvaluationRegistry } from "@periodic-eval/core";
import type { TaskRegistry } from "@periodic-eval/tasks";

/** The tasks that commands can name; asked for where one is run, for the sake of those that need none. */
export type LoadTasks = () => Promise<TaskRegistry>;

export const loadTasks: LoadTasks = async () => (await import("@periodic-eval/tasks")).tasks;

/** What entries of `evaluations` in a `periodic_eval` block can name. */
export async function loadEvaluations(tasks: LoadTasks): Promise<EvaluationRegistry> {
  const { evaluationsOf } = await import("@periodic-eval/tasks");
  const { feedbackEvaluations } = await import("@periodic-eval/feedback");
  return { ...evaluationsOf(await tasks()), ...feedbackEvaluations };
}
