import type * as yaml from "yaml";
import * as z from "zod";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { errorMessage, isRecord } from "@periodic-eval/contracts/options";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { logWarning } from "@periodic-eval/core/session";
import {
  parseJson,
  checkSuite,
  parseMetrics,
  type MetricsFile,
  type MetricsRun,
} from "../results/metrics-file.ts";
import {
  hashOfSuite,
  parseSuite,
  settingsOf,
  smokeOf,
  type Suite,
  type SuiteDefinition,
} from "../suite/suite-file.ts";
import { textIfPresent, type SubjectFacts } from "./identity.ts";
import { parsePartial, type RunFiles } from "./run-files.ts";

/** A run as far as it is known without its weights and documents. */
export interface ExpectedRun extends NamedRun {
  /** The source of a tokenizer that replaces the checkpoint's. */
  readonly tokenizer: string | null;
  /** Null for a checkpoint, which is not loaded. */
  readonly facts: SubjectFacts | null;
  /** A suite file, or its content. */
  readonly suite: string | SuiteDefinition;
  readonly smoke: boolean;
}

/**
 * Returns the finished runs in `metrics.json`, which a run of this suite and model may join.
 *
 * @throws PeriodicEvalError as `checkSuite` and `checkSameModel`.
 */
export function finishedRuns(
  metrics: string,
  file: MetricsFile,
  { suite, run }: { readonly suite: Suite; readonly run: NamedRun },
): readonly MetricsRun[] {
  checkSuite(metrics, file, { config_hash: hashOfSuite(suite), suite: settingsOf(suite) });
  checkSameModel(metrics, file.runs, run);
  return file.runs.filter((earlier) => Object.keys(earlier.metrics).length > 0);
}

/**
 * Whether a results folder has a finished run with this name, model, adapter, tokenizer and suite, whatever its sampling, and no
 * unfinished one. False, with a warning, where `run` would throw: a damaged file, another suite or another model.
 */
export function isFinished(files: RunFiles, expected: ExpectedRun): boolean {
  const { name, smoke } = expected;
  try {
    const interrupted = textIfPresent(files.partial);
    if (interrupted !== null) parsePartial(files, interrupted);
    const text = textIfPresent(files.metrics);
    if (interrupted !== null || text === null) return false;
    const file = parseMetrics(files.metrics, text);
    const read = parseSuite(contentOf(expected.suite), "suite");
    const suite = smoke ? smokeOf(read) : read;
    const runs = finishedRuns(
      files.metrics,
      { ...file, runs: file.runs.map(withoutSampling) },
      { suite, run: expected },
    );
    return runs.some((run) => run.name === name) && hasSameTokenizer(files, expected);
  } catch (error) {
    logWarning([], `Evaluator "${name}"`, `done is false: ${errorMessage(error)}`);
    return false;
  }
}

function contentOf(suite: string | SuiteDefinition): unknown {
  if (typeof suite !== "string") return suite;
  // Most programs that import this package read no suite.
  const { parse } = createRequire(import.meta.url)("yaml") as typeof yaml;
  return parse(readFileSync(suite, "utf8"));
}

/** Returns a run with the hash of its suite without the sampling that `run` added. */
function withoutSampling(run: MetricsRun): MetricsRun {
  if (!isRecord(run.suite)) return run;
  const { sampling: _, ...suite } = run.suite;
  return { ...run, suite, config_hash: hashJson(suite) };
}

const jobSchema = z.looseObject({}, "an object");

/** Compares the tokenizer, its chat template, and the model's settings with those in the run's folder, where they are known. */
function hasSameTokenizer({ job }: RunFiles, { facts, tokenizer }: ExpectedRun): boolean {
  const path = join(job, "results.json");
  const text = textIfPresent(path);
  if (text === null) return true;
  const { identity, tokenizer: source = null } = parseJson(jobSchema, text, {
    code: "store",
    where: path,
    fix: "Restore the file, or delete it: it is damaged.",
  });
  if (facts === null || !isRecord(identity)) return isSameSource(source, tokenizer);
  const { weights: _, ...model } = isRecord(identity["model"]) ? identity["model"] : {};
  const known = { model, adapter: identity["adapter"], tokenizer: identity["tokenizer"] } as Json;
  return hashJson(known) === hashJson(facts);
}

/** A run that is about to be measured. The model's name in results is its path as given. */
type NamedRun = Pick<MetricsRun, "name" | "model" | "adapter">;

/**
 * Refuses a run whose name another model or adapter has in `metrics.json`: tables and comparisons could not tell them apart.
 *
 * @throws PeriodicEvalError `config` that names both.
 */
function checkSameModel(metrics: string, runs: readonly MetricsRun[], run: NamedRun): void {
  const other = runs.find(
    (earlier) =>
      earlier.name === run.name &&
      !(isSameSource(earlier.model, run.model) && isSameSource(earlier.adapter, run.adapter)),
  );
  if (other === undefined) return;
  throw nameTaken(metrics, run, subjectText(run), subjectText(other));
}

/**
 * Refuses a checkpoint whose weights, tokenizer or engine are not those of the run of its name. A trainer's weights may change.
 *
 * @throws PeriodicEvalError `config`.
 */
export function checkSameWeights(metrics: string, runs: readonly MetricsRun[], run: NamedRun): void {
  const other = runs.find((earlier) => earlier.name === run.name);
  if (other === undefined) return;
  const changed = `${subjectText(run)} with other weights, tokenizer, engine or documents`;
  throw nameTaken(metrics, run, changed, `those of the run at ${other.timestamp}`);
}

/** Whether two models, or two adapters, have the same name or path. Relative paths are relative to the working directory. */
const isSameSource = (a: unknown, b: unknown): boolean =>
  a === b || (typeof a === "string" && typeof b === "string" && resolve(a) === resolve(b));

const subjectText = ({ model, adapter }: Pick<NamedRun, "model" | "adapter">): string =>
  `the model ${model}${adapter === null ? "" : ` with the adapter ${adapter}`}`;

const nameTaken = (metrics: string, { name }: NamedRun, got: string, expected: string) =>
  new PeriodicEvalError({
    code: "config",
    where: metrics,
    path: ["name"],
    got: `${got} under the name "${name}"`,
    expected: `${expected}, which has this name`,
    fix: "Choose another name (--name), or another results folder (--results).",
  });
