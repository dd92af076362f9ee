import { configError, isRecord, nearest } from "@periodic-eval/contracts/options";
import type { PeriodicEvalError } from "@periodic-eval/core";
import { type TrainableLM, windowLength } from "@periodic-eval/tfjs";
import { describeValue } from "../data/bad-row.ts";
import { evalName } from "../loop/training-data.ts";
import type { TrainerOptions, TrainingMethod } from "./trainer-options.ts";
import { oneOfTwo, scheduleOf, type TrainingConfig } from "./training-config.ts";

/** The properties of a model that are checked before the first step. The weights need not be loaded. */
export type OutlinedLM = Pick<
  TrainableLM,
  | "name"
  | "vocabSize"
  | "contextLength"
  | "fixedLength"
  | "takesDocuments"
  | "enterActivationCheckpointing"
  | "trainingMemory"
> & { readonly base?: OutlinedLM };

/**
 * Checks the model and the tokenizer of a trainer, for callers without TypeScript. Reads no weights.
 *
 * @param where Names the options in errors: `SFTTrainer options`.
 * @throws PeriodicEvalError `config`.
 */
export function checkParts(
  where: string,
  { model, tokenizer }: { model: unknown; tokenizer: unknown },
): void {
  const isSize = (value: unknown) => Number.isSafeInteger(value) && (value as number) > 0;
  if (!isRecord(model) || !isSize(model["vocabSize"]) || !isSize(model["contextLength"]))
    throw modelError(where, describePart(model));
  if (isRecord(tokenizer) && missingMethod(tokenizer, ["encode", "decode", "render"]) === null) return;
  throw configError({
    where,
    path: ["tokenizer"],
    got: describePart(tokenizer),
    expected: "a tokenizer with encode, decode and render",
    fix: "Pass the awaited result of loadTokenizer of @periodic-eval/models/tokenizer, or a custom Tokenizer.",
  });
}

/**
 * Checks that a model can be trained. A pipeline may be checked with an `OutlinedLM`, which cannot.
 *
 * @throws PeriodicEvalError `config`.
 */
export function checkTrainable(where: string, model: TrainableLM): void {
  const method = missingMethod(model, ["logits", "trainingLogits", "trainables", "save"]);
  if (method !== null) throw modelError(where, `a model without ${method}`);
}

const modelError = (where: string, got: string): PeriodicEvalError =>
  configError({
    where,
    path: ["model"],
    got,
    expected: "a language model that can be trained (TrainableLM)",
    fix: "Pass the awaited result of loadCausalLM or withLora of @periodic-eval/models, or a custom TrainableLM.",
  });

/** Returns the first of these methods that an object lacks; null if it has all of them. */
function missingMethod(value: object, methods: readonly string[]): string | null {
  return (
    methods.find((name) => typeof (value as Readonly<Record<string, unknown>>)[name] !== "function") ?? null
  );
}

const describePart = (value: unknown): string =>
  value instanceof Promise ? "a promise" : describeValue(value);

/** @throws PeriodicEvalError `config` for a `runDir` that is no path. Training checks that the folder can be written to. */
export function checkRunDir(where: string, runDir: unknown): void {
  if (typeof runDir === "string" && runDir !== "") return;
  throw configError({
    where,
    path: ["runDir"],
    value: runDir,
    expected: "the path of a folder",
    fix: "Set runDir to the run's folder; it is created if it does not exist.",
  });
}

/**
 * Checks a configuration against the model, the session and the validation rows. Reads no weights.
 *
 * @throws PeriodicEvalError `config` with the path of the option within the configuration.
 */
export function checkConfig<C extends TrainingConfig>(
  method: TrainingMethod<C>,
  { model, session }: Pick<TrainerOptions<C>, "session"> & { readonly model: OutlinedLM },
): void {
  const where = `${method.name} config`;
  checkMaxLength(where, method.config, model);
  checkActivationCheckpointing(where, method.config, model);
  if (method.config.saveAdapterAtFiring && session?.saveAtFiring !== undefined)
    throw oneOfTwo(where, ["saveAdapterAtFiring"], "true together with the session's saveAtFiring");
  checkValidation(where, method);
  // With `epochs`, the length of the phase is only known once the rows are counted.
  const { maxSteps } = method.config;
  if (maxSteps !== null) scheduleOf(where, method.config, maxSteps);
}

/** @throws PeriodicEvalError `config` for `restore` without a condition that could end training. */
export function checkRestore<C extends TrainingConfig>(
  { name, config }: TrainingMethod<C>,
  hasConditions: boolean,
): void {
  if (config.restore === null || hasConditions) return;
  throw configError({
    where: `${name} config`,
    path: ["restore"],
    got: `"${config.restore}" without conditions that end training`,
    expected: "a condition that ends training",
    fix: "Add one, such as capability worse, or remove restore.",
  });
}

function checkMaxLength(where: string, { maxLength }: TrainingConfig, model: OutlinedLM): void {
  const longest = windowLength(model);
  if (maxLength === null || maxLength <= longest) return;
  throw configError({
    where,
    path: ["maxLength"],
    value: maxLength,
    expected: `at most ${longest}, the model's context length`,
    fix: "Lower it, or remove it.",
  });
}

function checkActivationCheckpointing(
  where: string,
  { activationCheckpointing }: TrainingConfig,
  { enterActivationCheckpointing }: OutlinedLM,
): void {
  if (!activationCheckpointing || enterActivationCheckpointing !== undefined) return;
  throw configError({
    where,
    path: ["activationCheckpointing"],
    got: "true, for a model that does not support it",
    expected: "a model with enterActivationCheckpointing",
    fix: "Remove it, or lower batchSize and raise gradientAccumulation.",
  });
}

function checkValidation<C extends TrainingConfig>(where: string, method: TrainingMethod<C>): void {
  const { evalSteps, keepBest, validationShare } = method.config;
  if (method.hasValidation && validationShare !== null)
    throw oneOfTwo(where, ["validationShare"], `${validationShare} together with validation rows`);
  if (method.hasValidation || validationShare !== null) {
    if (keepBest !== null) checkMetric(where, keepBest, method.heldOutMetrics.map(evalName));
  } else if (evalSteps !== null)
    throw configError({
      where,
      path: ["evalSteps"],
      got: `${evalSteps} without validation rows`,
      expected: "rows to validate on",
      fix: "Set validation, or validationShare: 0.1; or remove evalSteps.",
    });
}

function checkMetric(where: string, keepBest: string, metrics: readonly string[]): void {
  if (metrics.includes(keepBest)) return;
  throw configError({
    where,
    path: ["keepBest"],
    value: keepBest,
    expected: metrics.map((metric) => `"${metric}"`).join(" or "),
    fix: `Set keepBest to "${nearest(keepBest, metrics) ?? metrics[0]}", or to null.`,
  });
}
