import { PeriodicEvalError } from "@periodic-eval/core";
import { nearest, quoteValue } from "@periodic-eval/core/internal";
import { arcChallenge, arcEasy } from "./arc.ts";
import { gsm8k } from "./gsm8k.ts";
import { hellaswag } from "./hellaswag.ts";
import { ifeval } from "./ifeval.ts";
import { mmluTasks } from "./mmlu.ts";
import { truthfulqaMc2 } from "./truthfulqa.ts";
import type { SampledTask } from "./task.ts";
import type { Task } from "./task.ts";

/** All tasks by name. */
export const tasks: Readonly<Record<string, SampledTask>> = Object.fromEntries(
  [arcChallenge, arcEasy, hellaswag, truthfulqaMc2, gsm8k, ifeval, ...mmluTasks].map((task) => [
    task.name,
    task,
  ]),
);

/** @throws PeriodicEvalError `config` at `where` for a task that the registry has not, naming the nearest that it has. */
export function taskNamed<T extends Task>(
  registry: Readonly<Record<string, T>>,
  name: unknown,
  where: string,
): T {
  const names = Object.keys(registry);
  if (typeof name === "string" && names.includes(name)) return registry[name]!;
  // Parts of a task (mmlu_anatomy) go without saying.
  const whole = names.filter((one) => !names.some((other) => one.startsWith(`${other}_`)));
  const guess = typeof name === "string" ? nearest(name, names) : null;
  throw new PeriodicEvalError({
    code: "config",
    where,
    got: quoteValue(name),
    expected: names.length === whole.length ? whole.join(", ") : `${whole.join(", ")}, or a part of one`,
    fix: guess === null ? "Name one of these." : `Did you mean "${guess}"?`,
  });
}
