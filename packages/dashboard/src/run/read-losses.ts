import { readIfPresent, type RunRecord, type TrainingPoint } from "@periodic-eval/core/snapshots";
import { join } from "node:path";
import { z } from "zod";

const entrySchema = z.object({ step: z.number(), metrics: z.object({ loss: z.number() }) });
const fileSchema = z.object({ losses: z.array(z.unknown()) });

/**
 * Returns a run with the losses that another trainer logged, for phases that have no training curves: `<run>/losses/<phase>.json`,
 * which `periodic-eval watch` writes. A phase without such a file, or with a damaged one, stays as it is.
 */
export async function withLosses(run: RunRecord): Promise<RunRecord> {
  const phases = run.phases.map(async (phase) => {
    if (phase.training !== undefined) return phase;
    const text = await readIfPresent(join(run.runDir, "losses", `${phase.name}.json`));
    const training = parse(text, phase.runStepOffset);
    return training.length === 0 ? phase : { ...phase, training };
  });
  return { ...run, phases: await Promise.all(phases) };
}

function parse(text: string | null, runStepOffset: number): readonly TrainingPoint[] {
  try {
    return fileSchema.parse(JSON.parse(text ?? "")).losses.flatMap((entry) => {
      const { data } = entrySchema.safeParse(entry);
      if (data === undefined) return [];
      const { step, metrics } = data;
      return [{ step, runStep: runStepOffset + step, metrics: { loss: metrics.loss } }];
    });
  } catch {
    return [];
  }
}
