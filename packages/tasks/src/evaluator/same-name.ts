import { basename, isAbsolute, resolve } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import type { MetricsRun } from "../results/metrics-file.ts";

/** A run that is about to be measured. */
export interface NamedRun {
  readonly name: string;
  /** The model's name in results: its path as given. */
  readonly model: string;
  readonly adapter: string | null;
}

/**
 * Refuses a run whose name another model or adapter has in `metrics.json`: tables and comparisons could not tell them apart.
 *
 * @throws PeriodicEvalError `config` that names both.
 */
export function checkSameModel(metrics: string, runs: readonly MetricsRun[], run: NamedRun): void {
  const other = runs.find(
    (one) =>
      one.name === run.name &&
      !(isSameSource(one.model, run.model) && isSameSource(one.adapter, run.adapter)),
  );
  if (other === undefined) return;
  const paths = [run.model, other.model, run.adapter ?? "", other.adapter ?? ""];
  const mayBeMoved = basename(run.model) === basename(other.model) && paths.some((path) => !isAbsolute(path));
  const advice = mayBeMoved
    ? " Relative paths count from the working directory: for the same model, use that of the earlier run."
    : "";
  throw nameTaken(metrics, run, subjectText(run), subjectText(other), advice);
}

/**
 * Refuses a checkpoint whose weights, tokenizer or engine are not those of the run of its name. A trainer's weights may change.
 *
 * @throws PeriodicEvalError `config`.
 */
export function checkSameWeights(metrics: string, runs: readonly MetricsRun[], run: NamedRun): void {
  const other = runs.find((one) => one.name === run.name);
  if (other === undefined) return;
  const changed = `${subjectText(run)} with other weights, tokenizer, engine or documents`;
  throw nameTaken(metrics, run, changed, `those of the run at ${other.timestamp}`);
}

/** Whether two models, or two adapters, have the same name or path. Relative paths are relative to the working directory. */
export const isSameSource = (a: unknown, b: unknown): boolean =>
  a === b || (typeof a === "string" && typeof b === "string" && resolve(a) === resolve(b));

const subjectText = ({ model, adapter }: Pick<NamedRun, "model" | "adapter">): string =>
  `the model ${model}${adapter === null ? "" : ` with the adapter ${adapter}`}`;

const nameTaken = (metrics: string, { name }: NamedRun, got: string, expected: string, advice = "") =>
  new PeriodicEvalError({
    code: "config",
    where: metrics,
    path: ["name"],
    got: `${got} under the name "${name}"`,
    expected: `${expected}, which has this name`,
    fix: `Choose another name (--name), or another results folder (--results).${advice}`,
  });
