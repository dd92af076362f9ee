import type { Row, Snapshot } from "@periodic-eval/core";
import { nodeFiles, readRows, type FileReader } from "@periodic-eval/store";
import { type RunRecord } from "@periodic-eval/contracts";
import { type ScatterData, type ScoredMeasurement, evenly } from "../page-data/run-data.ts";
import { rowsPlace } from "../answers/answered-measurements.ts";
import { isMap, ownValue } from "../html/format.ts";

/** Answers per measurement in the page's data: the first ones, which are in random order. */
const maxAnswers = 400;

export interface AnswerScoresOptions {
  readonly files?: FileReader;
  /** Most measurements of a callback to read, evenly spaced. Default: all. */
  readonly maxMeasurements?: number;
  /** Rows of the largest measurement to read. Default: any. */
  readonly maxRows?: number;
}

/**
 * Reads the judge's scores (aligned and coherent) of a run's answers, by callback. Leaves out measurements whose answers cannot be
 * read: the page names them as problems.
 */
export async function readAnswerScores(
  run: RunRecord,
  { files = nodeFiles, maxMeasurements = Infinity, maxRows = Infinity }: AnswerScoresOptions = {},
): Promise<readonly ScatterData[]> {
  const scored = run.phases.flatMap(({ snapshots }, part) =>
    snapshots.filter((one) => isScored(one, maxRows)).map((snapshot) => ({ part, snapshot })),
  );
  const scatters: ScatterData[] = [];
  for (const callback of new Set(scored.map(({ snapshot }) => snapshot.id))) {
    const all = scored.filter(({ snapshot }) => snapshot.id === callback);
    const measurements: ScoredMeasurement[] = [];
    for (const { part, snapshot } of evenly(all, maxMeasurements)) {
      const { snapshotFile, samples } = rowsPlace(run, snapshot);
      const rows = await readRows(snapshotFile, samples, files).catch(() => []);
      const { step, run_step: runStep } = snapshot;
      const scores = scoresOf(rows);
      if (scores.scored > 0) measurements.push({ part, step, runStep, ...scores });
    }
    if (measurements.length > 0) scatters.push({ callback, ...thresholdsOf(all[0]!.snapshot), measurements });
  }
  return scatters;
}

/** Whether a judge scored the answers of a measurement: only these metrics come from its two scores. */
const isScored = ({ samples, metrics }: Snapshot, maxRows: number): boolean =>
  samples !== null && samples.rows <= maxRows && "aligned" in metrics && "coherent" in metrics;

function scoresOf(rows: readonly Row[]): Pick<ScoredMeasurement, "answers" | "scored" | "total"> {
  const completions = rows.filter((row) => !("kind" in row) || row.kind === "completion");
  const answers = completions.flatMap((row): ScoredMeasurement["answers"] => {
    const { aligned, coherent } = row as { readonly aligned?: unknown; readonly coherent?: unknown };
    return typeof aligned === "number" && typeof coherent === "number" ? [[aligned, coherent]] : [];
  });
  return { answers: answers.slice(0, maxAnswers), scored: answers.length, total: completions.length };
}

/** Returns the thresholds that the snapshot recorded; null without them. */
function thresholdsOf({
  provenance: { evaluation },
}: Snapshot): Pick<ScatterData, "misalignedBelow" | "coherentAbove"> {
  const threshold = (name: string): number | null => {
    const value = isMap(evaluation ?? undefined)
      ? ownValue(evaluation as object as Record<string, unknown>, name)
      : null;
    return typeof value === "number" ? value : null;
  };
  return { misalignedBelow: threshold("misaligned_below"), coherentAbove: threshold("coherent_above") };
}
