import { join } from "node:path";
import type { RunRecord } from "@periodic-eval/contracts";
import { dataError, isRecord } from "@periodic-eval/contracts/options";
import type { Grader, Snapshot } from "@periodic-eval/core";
import {
  checkJudgeFor,
  isBare,
  judgeAgreement,
  judgeRows,
  misalignedRate,
  type AlignmentRow,
  type JudgeAgreement,
  type JudgeRows,
  type MisalignedRate,
} from "@periodic-eval/core/evaluations";
import { formatValue } from "@periodic-eval/dashboard";
import { fileStore, readRun, writeFileAtomic } from "@periodic-eval/store";
import { warnOfProblems } from "../../run/read-runs.ts";
import { jsonText, plainTable, type Terminal, type Colours } from "../../terminal/terminal.ts";

/** A snapshot whose answers were regraded. */
export interface Rejudged {
  readonly snapshot: Snapshot;
  /** File of the new verdicts. */
  readonly file: string;
  readonly agreement: JudgeAgreement;
  readonly before: MisalignedRate;
  readonly now: MisalignedRate;
  readonly judgeErrors: number;
}

export interface RejudgeResult {
  readonly judge: string;
  readonly snapshots: readonly Rejudged[];
  /** Agreement over the answers of all snapshots. */
  readonly agreement: JudgeAgreement;
}

interface RejudgeOptions {
  readonly signal: AbortSignal;
  readonly now: () => string;
  /** Receives the problems of the run's files. */
  readonly terminal: Pick<Terminal, "err">;
}

/**
 * Grades the stored answers of a run's alignment snapshots with another judge, and with the judge prompts that the snapshots
 * record: those of the questions, otherwise those of the first judge if the other one has prompts of these names. The snapshots
 * do not change. The verdicts go to `<id>_step_<N>-rejudged-by-<judge>.json` next to each one, a name that no snapshot has.
 *
 * @throws PeriodicEvalError `data` if the run has no alignment snapshot with rows; `config` if the judge cannot follow the
 *   prompts of the first judge; `judge` if it cannot be reached.
 */
export async function rejudge(
  runDir: string,
  judge: Grader,
  { signal, now, terminal }: RejudgeOptions,
): Promise<RejudgeResult> {
  const run = await readRun(runDir);
  warnOfProblems(run, terminal);
  const answers = await answersOf(run, judge);
  // Prompts are named by hashes.
  const prompts: JudgeRows["prompts"] = Object.assign({}, ...answers.map((entry) => entry.prompts));
  const judging = { judge, prompts };
  await checkJudgeFor(
    answers.flatMap(({ old }) => old),
    judging,
    { signal },
  );
  const graded: {
    readonly rejudged: Rejudged;
    readonly old: readonly AlignmentRow[];
    readonly again: readonly AlignmentRow[];
  }[] = [];
  for (const { snapshot, path, old } of answers) {
    const again = await judgeRows(old, judging, { signal });
    const rejudged: Rejudged = {
      snapshot,
      // In the flat layout a name ends with the phase. The suffix goes before it, or the file would pass for a snapshot.
      file: path.replace(/(?<=_step_\d+)(\.[^/\\]*)?\.json$/, `-rejudged-by-${fileName(judge.name)}$1.json`),
      agreement: judgeAgreement(old, again),
      before: misalignedRate(old),
      now: misalignedRate(again),
      judgeErrors: again.filter(({ status }) => status === "error").length,
    };
    await writeFileAtomic(rejudged.file, `${jsonText(recordOf(rejudged, judge, again, now()))}\n`);
    graded.push({ rejudged, old, again });
  }
  return {
    judge: judge.name,
    snapshots: graded.map(({ rejudged }) => rejudged),
    agreement: judgeAgreement(
      graded.flatMap(({ old }) => old),
      graded.flatMap(({ again }) => again),
    ),
  };
}

/** Returns an agreement with the keys of the JSON output and of the verdict files. */
export function agreementKeys({ n, gradedByOne, sameDecision, kappa, ci95, meanDifference }: JudgeAgreement) {
  return {
    graded_by_both: n,
    graded_by_one: gradedByOne,
    same_decision: sameDecision,
    cohens_kappa: kappa,
    cohens_kappa_ci95: ci95 && [...ci95],
    mean_difference_aligned: meanDifference.aligned,
    mean_difference_coherent: meanDifference.coherent,
  };
}

/** Returns the run's alignment snapshots with their answers to bare questions, and the judge prompts that the rows name. */
async function answersOf(run: RunRecord, judge: Grader) {
  const store = fileStore(run.runDir);
  const answers = [];
  for (const { snapshot, path } of alignmentSnapshots(run)) {
    const rows = (await store.rows(snapshot)) as readonly AlignmentRow[];
    const { named, ofJudge } = promptsOf(snapshot, judge);
    // Rows of an ungraded snapshot have no scores yet.
    const old = rows.filter(isBare).map((row) => ({
      ...row,
      judgePrompts: row.judgePrompts ?? ofJudge,
      aligned: row.aligned ?? null,
      coherent: row.coherent ?? null,
    }));
    answers.push({ snapshot, path, old, prompts: named });
  }
  return answers;
}

/** Returns the snapshots whose answers can be regraded. Skips snapshots with damaged rows, which were reported. */
function alignmentSnapshots({
  runDir,
  phases,
  problems,
}: RunRecord): readonly { readonly snapshot: Snapshot; readonly path: string }[] {
  const isDamaged = ({ phase, id, step }: Snapshot) =>
    problems.some(
      ({ kind, key }) => kind === "rows" && key?.phase === phase && key.id === id && key.step === step,
    );
  const regradable = phases.flatMap(({ snapshots, series }) =>
    snapshots
      .filter((stored) => stored.evaluation === "alignment" && stored.samples !== null && !isDamaged(stored))
      .map((snapshot) => {
        const { points } = series.find(({ id }) => id === snapshot.id)!;
        const { file } = points.find(({ step }) => step === snapshot.step)!;
        return { snapshot, path: join(runDir, "periodic_eval", file) };
      }),
  );
  if (regradable.length > 0) return regradable;
  throw dataError(
    runDir,
    "no alignment snapshot with rows",
    "snapshots of the alignment evaluation under periodic_eval/",
    "Name the folder of a run that measured alignment.",
  );
}

/**
 * Returns the judge prompts that a snapshot records, by name.
 *
 * @returns `ofJudge`: the name of the prompts of the snapshot's judge, for rows whose question has none; null if the snapshot
 *   records none, or none that `judge` follows.
 */
function promptsOf(
  { provenance }: Snapshot,
  { promptNames }: Grader,
): { readonly named: JudgeRows["prompts"]; readonly ofJudge: string | null } {
  const { judge_prompts: ofQuestions, judge } = (provenance.evaluation ?? {}) as {
    readonly judge_prompts?: JudgeRows["prompts"] | null;
    readonly judge?: { readonly fingerprint: string; readonly description?: unknown };
  };
  const named = ofQuestions ?? {};
  const judgePrompts = isRecord(judge?.description) ? judge.description["prompts"] : null;
  if (!isRecord(judgePrompts) || promptNames === undefined) return { named, ofJudge: null };
  const names = Object.keys(judgePrompts).toSorted().join();
  if (names !== promptNames.toSorted().join()) return { named, ofJudge: null };
  // The fingerprint covers the prompts.
  const { fingerprint } = judge!;
  return {
    named: { ...named, [fingerprint]: judgePrompts as unknown as JudgeRows["prompts"][string] },
    ofJudge: fingerprint,
  };
}

/** Returns what the verdict file and the JSON output say about a snapshot. */
function resultOf({ snapshot, agreement, before, now, judgeErrors }: Rejudged) {
  const { phase, id, step } = snapshot;
  return {
    phase,
    id,
    step,
    ...agreementKeys(agreement),
    judge_errors: judgeErrors,
    misaligned_rate_before: before.ofGraded.value,
    misaligned_rate: now.ofGraded.value,
    misaligned_before: before.ofSampled.value,
    misaligned: now.ofSampled.value,
  };
}

function recordOf(rejudged: Rejudged, judge: Grader, rows: readonly AlignmentRow[], createdAt: string) {
  return {
    ...resultOf(rejudged),
    judge: {
      name: judge.name,
      fingerprint: judge.fingerprint,
      models: [...new Set(rows.map(({ judgeModel }) => judgeModel).filter((model) => model !== null))],
      description: judge.describe?.() ?? null,
    },
    created_at: createdAt,
    verdicts: rows.map(({ id: row, status, aligned, coherent, raw }) => ({
      id: row,
      status,
      aligned,
      coherent,
      raw,
    })),
  };
}

const fileName = (name: string): string => name.replaceAll(/[^\w.-]+/g, "-");

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
  const rows = snapshots.map((rejudged) => [
    rejudged.snapshot.phase,
    String(rejudged.snapshot.step),
    ...agreementCells(rejudged.agreement),
    rate(rejudged),
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

export const rejudgeJson = ({ judge, snapshots, agreement }: RejudgeResult): string =>
  jsonText({
    judge,
    ...agreementKeys(agreement),
    snapshots: snapshots.map((rejudged) => ({ ...resultOf(rejudged), file: rejudged.file })),
  });
