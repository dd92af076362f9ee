import * as z from "zod";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { EvaluableModel, Json } from "@periodic-eval/core";
import { isMissingFile } from "@periodic-eval/data";
import type { CallSampling } from "../families/evaluate-options.ts";
import { parseJson } from "../results/metrics-file.ts";
import type { OpenTask } from "../suite/open-tasks.ts";
import type { Suite } from "../suite/suite-file.ts";

/** The measured model. */
export interface Subject {
  readonly model: EvaluableModel;
  /** The name in results: the path as given. */
  readonly name: string;
  readonly adapter: string | null;
  /** Hash of all weights; null if unknown. */
  readonly fingerprint: string | null;
}

/** The part of a run's identity that is known without weights and documents. */
export type SubjectFacts = ReturnType<typeof factsOf>;

/** Returns the model's settings and its tokenizer. */
export const factsOf = ({ model, adapter }: Pick<Subject, "model" | "adapter">) => {
  const { identity, contextLength, tokenizer } = model;
  return {
    model: {
      name: identity.name,
      engine: identity.engine,
      dtype: identity.dtype,
      details: identity.details ?? null,
      context_length: contextLength,
    },
    // The model's identity goes first, because a path can be written in several ways.
    adapter: identity.adapter ?? adapter,
    tokenizer: tokenizer?.fingerprint ?? null,
  };
};

/** Returns everything that changes a number of a run. */
export function identityOf(
  subject: Subject,
  suite: Suite & { readonly sampling?: CallSampling },
  tasks: readonly OpenTask[],
): Json {
  const { model, adapter, tokenizer } = factsOf(subject);
  return {
    model: { ...model, weights: subject.fingerprint },
    adapter,
    tokenizer,
    smoke: suite.smoke,
    seed: suite.seed,
    fewshot_seed: suite.fewshot_seed,
    ...(suite.sampling && { sampling: { ...suite.sampling } }),
    tasks: Object.fromEntries(
      tasks.map(({ name: task, version, settings, itemsHash, provenance }) => [
        task,
        { version, ...settings, items: itemsHash, evaluation: provenance },
      ]),
    ),
  };
}

/** The configuration that is stored with a checkpoint. Null: the folder has no such file, or the source is no folder here: a
 * name on the hub, or one that only `openModel` knows, which `run` opens. */
export interface CheckpointConfig {
  /** `config.json` of the checkpoint. */
  readonly model: Json;
  /** `adapter_config.json` of the adapter. */
  readonly adapter: Json;
  /** The training as the trainer stored it: `exact` of `trainer_state.json`, of the adapter if there is one. */
  readonly training: Json;
}

/**
 * Reads the configuration of a checkpoint, without its weights.
 *
 * @throws PeriodicEvalError `model` for a file that is not JSON.
 */
export function checkpointConfig(folder: string, adapter: string | null): CheckpointConfig {
  const tuned = adapter ?? folder;
  return {
    model: objectIn(join(folder, "config.json")),
    adapter: objectIn(join(tuned, "adapter_config.json")),
    training: objectIn(join(tuned, "trainer_state.json"))?.["exact"] ?? null,
  };
}

const schema = z.record(z.string(), z.json(), "an object");

function objectIn(path: string): z.infer<typeof schema> | null {
  const text = textIfPresent(path);
  if (text === null) return null;
  const fix = "Restore the file, or save the checkpoint again.";
  return parseJson(schema, text, { code: "model", where: path, fix });
}

/** Returns the text of a file; null if there is no file. */
export function textIfPresent(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (isMissingFile(error)) return null;
    throw error;
  }
}
