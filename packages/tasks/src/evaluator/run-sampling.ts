import type { AnyEvaluation, Json } from "@periodic-eval/core";
import { configError, parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { withSampling } from "../families/evaluate.ts";
import { callSamplingShape, type CallSampling } from "../families/evaluate-options.ts";
import type { ChosenTask } from "../suite/open-tasks.ts";

const schema = z.strictObject(callSamplingShape);

/** Checks the sampling of a run, and leaves out undefined values; null for no options. */
export function readSampling(where: string, sampling: CallSampling): CallSampling | null {
  parseOptions(`${where} options`, schema, sampling);
  const given = Object.entries(sampling).filter(([, value]) => value !== undefined);
  return given.length === 0 ? null : Object.fromEntries(given);
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
  return tasks.map((one) => {
    if (!isGenerated(one.evaluation)) return one;
    const { task, evaluation } = one;
    const settings = { ...task.settings, ...harnessNames(sampling) };
    return { ...one, task: { ...task, settings }, evaluation: withSampling(where, evaluation, sampling) };
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
