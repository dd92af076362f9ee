import {
  type AnyEvaluation,
  type MetricKit,
  type Anchor,
  type Grader,
  type Json,
  type Snapshot,
  hashJson,
} from "@periodic-eval/contracts";
import { storedJudge } from "../../grading/grader-schema.ts";
import { defineEvaluation } from "../kit/define.ts";
import { withFaults } from "../prompting/coherence.ts";
import { defaultAnchors, anchorRow } from "./anchors.ts";
import { alignmentFailure, judgeOpenRows, type JudgeRows } from "./judge-rows.ts";
import {
  alignmentFields,
  alignmentMetrics,
  alignmentPlainKeys,
  alignmentWarnings,
  isCompletion,
  type AlignmentItem,
  type AlignmentRow,
  type AnsweredRow,
} from "./metrics.ts";

/** The part of an alignment snapshot's `provenance.evaluation` that grading depends on. */
interface StoredAlignment {
  readonly judge_prompts: JudgeRows["prompts"] | null;
  readonly anchors: string | null;
  /** Null for the default ones. */
  readonly custom_anchors: readonly Anchor[] | null;
  readonly max_error_share: number;
}

/**
 * Returns an evaluation that grades the stored answers of an alignment snapshot, and its anchors, as its callback would. It cannot
 * measure. Null if the snapshot's judge is another one, or if the judge's anchors or the default ones have changed since.
 */
export function storedAlignmentEvaluation(snapshot: Snapshot, judge: Grader): AnyEvaluation | null {
  if (storedJudge(snapshot)?.fingerprint !== judge.fingerprint) return null;
  const stored = snapshot.provenance.evaluation as unknown as StoredAlignment;
  const anchors = stored.anchors === null ? [] : (stored.custom_anchors ?? judge.anchors ?? defaultAnchors);
  if (stored.anchors !== null && stored.anchors !== hashJson(anchors as unknown as Json)) return null;
  const prompts = stored.judge_prompts ?? {};
  // Its verdicts are in the rows.
  const second =
    (snapshot as { readonly second_judge?: Pick<Grader, "name" | "fingerprint"> }).second_judge ?? null;
  const anchorRows = anchors.map((anchor) => anchorRow(anchor, Object.keys(prompts)[0] ?? null));
  return defineEvaluation({
    name: snapshot.evaluation,
    version: snapshot.evaluation_version,
    needs: [],
    // The rows are stored; only their number matters.
    samplesPerItem: samplesOf(snapshot),
    items: (): readonly AlignmentItem[] => [],
    measure: (): Promise<readonly AlignmentRow[]> => Promise.resolve([]),
    provenance: () => snapshot.provenance.evaluation,
    grade: (rows, call): Promise<readonly AlignmentRow[]> =>
      judgeOpenRows(
        [...withFaults(rows.filter(isCompletion)), ...gradedAnchors(anchorRows, rows)],
        { judge, prompts },
        call,
      ),
    failure: (rows) => alignmentFailure(rows, stored.max_error_share),
    answers: alignmentFields,
    metrics: (kit: MetricKit<AlignmentRow>) =>
      alignmentMetrics(kit, {
        anchors,
        hasTrainingFormat: "training_format_effect" in snapshot.metrics,
      }),
    warnings: alignmentWarnings,
    plainKeys: (metrics, rows) =>
      alignmentPlainKeys(metrics, rows, { judge: judge.name, anchors, secondJudge: second }),
  });
}

/** Returns anchors with the grades that earlier gradings gave them. */
function gradedAnchors(
  anchors: readonly AnsweredRow[],
  rows: readonly AnsweredRow[],
): readonly AnsweredRow[] {
  const known = new Map(rows.map((row) => [row.id, row]));
  return anchors.map((row) => known.get(row.id) ?? row);
}

function samplesOf({ provenance }: Snapshot): number {
  const { samples } = provenance.evaluation as { readonly samples?: { readonly n?: number } };
  return samples?.n ?? 1;
}
