import { formatValue } from "@periodic-eval/dashboard";
import { agreementKeys, type Rejudged, type RejudgeResult } from "./run.ts";
import { plainTable } from "../../terminal/plain-table.ts";
import type { Colours } from "../../terminal/terminal.ts";

const columns = [
  { words: "phase" },
  "step",
  "graded by both",
  "by one only",
  "same decision",
  "kappa",
  "|Δ aligned|",
  "|Δ coherent|",
  "misaligned rate",
];

export function rejudgeTable({ judge, snapshots, agreement }: RejudgeResult, colours: Colours): string {
  const rate = ({ before, now }: Rejudged) =>
    `${formatValue(before.ofGraded.value, "share")} → ${formatValue(now.ofGraded.value, "share")}`;
  const rows = snapshots.map((one) => [
    one.snapshot.phase,
    String(one.snapshot.step),
    ...agreementCells(one.agreement),
    rate(one),
  ]);
  const all = snapshots.length < 2 ? [] : [["all", "", ...agreementCells(agreement), ""]];
  const errors = snapshots.reduce((sum, { judgeErrors }) => sum + judgeErrors, 0);
  return [
    plainTable(columns, [...rows, ...all], colours),
    "",
    ...(errors === 0 ? [] : [`${judge} failed on ${errors} answers`]),
    ...snapshots.map(({ file }) => file),
  ].join("\n");
}

function agreementCells({
  n,
  gradedByOne,
  sameDecision,
  kappa,
  meanDifference,
}: RejudgeResult["agreement"]): readonly string[] {
  return [
    String(n),
    String(gradedByOne),
    formatValue(sameDecision, "share"),
    formatValue(kappa, ""),
    formatValue(meanDifference.aligned, ""),
    formatValue(meanDifference.coherent, ""),
  ];
}

export function rejudgeJson({ judge, snapshots, agreement }: RejudgeResult): string {
  return JSON.stringify(
    {
      judge,
      ...agreementKeys(agreement),
      snapshots: snapshots.map(({ snapshot, file, agreement: own, before, now, judgeErrors }) => ({
        phase: snapshot.phase,
        id: snapshot.id,
        step: snapshot.step,
        file,
        ...agreementKeys(own),
        judge_errors: judgeErrors,
        misaligned_rate_before: before.ofGraded.value,
        misaligned_rate: now.ofGraded.value,
        misaligned_before: before.ofSampled.value,
        misaligned: now.ofSampled.value,
      })),
    },
    null,
    2,
  );
}
