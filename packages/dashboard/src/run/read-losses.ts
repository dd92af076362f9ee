import { readIfPresent, type RunRecord } from "@periodic-eval/core/snapshots";
import { join } from "node:path";
import { z } from "zod";
import type { LoggedLoss } from "../charts/loss-chart.ts";

const entrySchema = z.object({ step: z.number(), metrics: z.object({ loss: z.number() }) });
const fileSchema = z.object({ losses: z.array(z.unknown()) });

/**
 * Reads the losses that another trainer logged, by phase: `<run>/losses/<phase>.json`, which `periodic-eval watch` writes. A phase
 * without such a file, or with a damaged one, is left out.
 */
export async function readLosses(run: RunRecord): Promise<ReadonlyMap<string, readonly LoggedLoss[]>> {
  const found = new Map<string, readonly LoggedLoss[]>();
  for (const { name } of run.phases) {
    const losses = parse(await readIfPresent(join(run.runDir, "losses", `${name}.json`)));
    if (losses.length > 0) found.set(name, losses);
  }
  return found;
}

function parse(text: string | null): readonly LoggedLoss[] {
  try {
    return fileSchema.parse(JSON.parse(text ?? "")).losses.flatMap((entry) => {
      const { data } = entrySchema.safeParse(entry);
      return data === undefined ? [] : [{ step: data.step, loss: data.metrics.loss }];
    });
  } catch {
    return [];
  }
}
