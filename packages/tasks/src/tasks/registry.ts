import { configError, didYouMean } from "@periodic-eval/contracts/options";
import { arcChallenge, arcEasy } from "./arc.ts";
import { gsm8k } from "./gsm8k.ts";
import { hellaswag } from "./hellaswag.ts";
import { ifeval } from "./ifeval.ts";
import { mmluTasks } from "./mmlu.ts";
import { truthfulqaMc2 } from "./truthfulqa.ts";
import type { ValuePath } from "@periodic-eval/core";
import type { SampledTask, Task } from "./task.ts";

/** Tasks by name. */
export type TaskRegistry = Readonly<Record<string, SampledTask>>;

/** All tasks, by name. */
export const tasks: TaskRegistry = Object.fromEntries(
  [arcChallenge, arcEasy, hellaswag, truthfulqaMc2, gsm8k, ifeval, ...mmluTasks].map((task) => [
    task.name,
    task,
  ]),
);

/**
 * Returns a task of the registry.
 *
 * @param where The options or file that names the task, for errors.
 * @param path The place of the name in `where`.
 * @throws PeriodicEvalError `config` for an unknown name, with the nearest known name.
 */
export function taskNamed<T extends Task>(
  registry: Readonly<Record<string, T>>,
  name: unknown,
  where: string,
  path: ValuePath = [],
): T {
  const names = Object.keys(registry);
  if (typeof name === "string" && names.includes(name)) return registry[name]!;
  // The message leaves out parts of a task (mmlu_anatomy).
  const whole = names.filter((known) => !names.some((other) => known.startsWith(`${other}_`)));
  throw configError({
    where,
    path,
    value: name,
    expected: names.length === whole.length ? whole.join(", ") : `${whole.join(", ")}, or a part of one`,
    fix: didYouMean(name, names) ?? "Name one of these.",
  });
}
