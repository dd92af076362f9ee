import { nearest, PeriodicEvalError, shown } from "@periodic-eval/core";
import { arcChallenge, arcEasy } from "./arc.ts";
import { gsm8k } from "./gsm8k.ts";
import { hellaswag } from "./hellaswag.ts";
import { ifeval } from "./ifeval.ts";
import { mmluTasks } from "./mmlu.ts";
import { truthfulqaMc2 } from "./truthfulqa.ts";
import type { Task } from "./types.ts";

/** All tasks by name. */
export const tasks: ReadonlyMap<string, Task> = new Map(
  [arcChallenge, arcEasy, hellaswag, truthfulqaMc2, gsm8k, ifeval, ...mmluTasks].map((task) => [
    task.name,
    task,
  ]),
);

/** @throws PeriodicEvalError `config` for a task that there is not, naming the nearest that there is. */
export function taskNamed(name: string): Task {
  const task = tasks.get(name);
  if (task !== undefined) return task;
  const close = nearest(name, [...tasks.keys()]);
  throw new PeriodicEvalError({
    code: "config",
    where: "task",
    got: shown(name),
    expected:
      "arc_challenge, arc_easy, gsm8k, hellaswag, ifeval, mmlu, mmlu_<group or subject>, truthfulqa_mc2",
    fix: close === null ? "Name one of these." : `Did you mean "${close}"?`,
  });
}
