import { nodeFiles, readRows, type FileReader, type RunRecord } from "@periodic-eval/core/snapshots";
import type { ScatterData, ScoredMeasurement } from "../page-data/run-data.ts";
import { rowsPlace } from "../answers/rows-place.ts";
import { isMap, ownValue } from "../html/json-field.ts";

/** Answers per measurement in the page's data: the first ones, which are in random order. */
const maxAnswers = 400;

/**
 * Reads the judge's scores (aligned and coherent) of a run's answers, by callback. Leaves out measurements whose answers cannot be
 * read: the page names them as problems.
 */
export async function readAnswerScores(
  run: RunRecord,
  files: FileReader = nodeFiles,
): Promise<readonly ScatterData[]> {
  const byCallback = new Map<string, ScatterData & { measurements: ScoredMeasurement[] }>();
  for (const [phase, { snapshots }] of run.phases.entries()) {
    for (const snapshot of snapshots) {
      const { id, step, metrics, samples } = snapshot;
      // Only these metrics come from a judge's two scores.
      if (samples === null || !("aligned" in metrics && "coherent" in metrics)) continue;
      const { snapshotFile } = rowsPlace(run, snapshot);
      const rows = await readRows(snapshotFile, samples, files).catch(() => []);
      const completions = rows.filter((row) => !("kind" in row) || row.kind === "completion");
      const answers = completions.flatMap((row): ScoredMeasurement["answers"] => {
        const { aligned, coherent } = row as { readonly aligned?: unknown; readonly coherent?: unknown };
        return typeof aligned === "number" && typeof coherent === "number" ? [[aligned, coherent]] : [];
      });
      if (answers.length === 0) continue;
      const scatter = byCallback.get(id) ?? { callback: id, ...thresholdsOf(snapshot), measurements: [] };
      byCallback.set(id, scatter);
      scatter.measurements.push({
        phase,
        step,
        runStep: snapshot.run_step,
        answers: answers.slice(0, maxAnswers),
        scored: answers.length,
        total: completions.length,
      });
    }
  }
  return [...byCallback.values()];
}

/** Returns the thresholds that the snapshot recorded; null without them. */
function thresholdsOf({
  provenance: { evaluation },
}: RunRecord["phases"][number]["snapshots"][number]): Pick<ScatterData, "misalignedBelow" | "coherentAbove"> {
  const threshold = (name: string): number | null => {
    const value = isMap(evaluation ?? undefined)
      ? ownValue(evaluation as object as Record<string, unknown>, name)
      : null;
    return typeof value === "number" ? value : null;
  };
  return { misalignedBelow: threshold("misaligned_below"), coherentAbove: threshold("coherent_above") };
}
