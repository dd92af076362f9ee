import { windowLength } from "@periodic-eval/core/tfjs";
import { loadDataset } from "../data/dataset.ts";
import { loadPreferences } from "../data/preference-dataset.ts";
import { parseDPOConfig } from "../dpo/dpo-config.ts";
import { parseSFTConfig } from "../sft/sft-config.ts";
import type { OutlinedLM } from "../trainer/outlined-lm.ts";
import type { PipelineOptions, PipelinePhase } from "./run-pipeline.ts";

/**
 * Reads the rows of a phase, those to validate on too, as its trainer will, and keeps none: reading takes little beside
 * training, and a late phase's mistake shall not show after hours of the first. No weight is asked for.
 *
 * @returns what is wrong: of either source the `data` error that its trainer would throw, or the `config` error for a `loss`
 *   that is none for a row's form
 * @throws PeriodicEvalError `config` for a configuration that `checkPipeline` refuses
 */
export async function checkDatasets(
  phase: PipelinePhase,
  options: Pick<PipelineOptions, "tokenizer" | "config"> & { readonly model: OutlinedLM },
): Promise<readonly unknown[]> {
  const wrong: unknown[] = [];
  for (const read of readings(phase, options)) {
    try {
      await read();
    } catch (error) {
      wrong.push(error);
    }
  }
  return wrong;
}

function readings(
  phase: PipelinePhase,
  {
    tokenizer,
    config: shared,
    model,
  }: Pick<PipelineOptions, "tokenizer" | "config"> & { readonly model: OutlinedLM },
): readonly (() => Promise<unknown>)[] {
  const given = { ...shared, ...phase.config };
  if (phase.method === "dpo") {
    const { maxLength, onBadRow } = parseDPOConfig(given);
    const reading = {
      maxLength: maxLength ?? windowLength(model),
      onBadRow,
      isPrecomputed: phase.reference === "precomputed",
      // Told where the phase begins.
      warn: () => {},
    };
    return sourcesOf(phase).map((source) => () => loadPreferences(source, tokenizer, reading));
  }
  const { maxLength, onBadRow, loss } = parseSFTConfig(given);
  const reading = { maxLength: maxLength ?? windowLength(model), onBadRow, loss };
  return sourcesOf(phase).map((source) => () => loadDataset(source, tokenizer, reading));
}

const sourcesOf = <S>({ dataset, validation }: { readonly dataset: S; readonly validation?: S }): S[] =>
  validation === undefined ? [dataset] : [dataset, validation];
