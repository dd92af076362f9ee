import { PeriodicEvalError, type Grader, type Snapshot } from "@periodic-eval/core";
import {
  followedPrompts,
  judgeAgreement,
  judgeRows,
  misalignedRate,
  type AlignmentRow,
  type JudgeAgreement,
  type JudgeRows,
  type MisalignedRate,
} from "@periodic-eval/core/evaluations";
import { fileStore, readRun, writeFileAtomic } from "@periodic-eval/core/snapshots";
import { join } from "node:path";

/** A snapshot whose answers were graded again. */
export interface Rejudged {
  readonly snapshot: Snapshot;
  /** Where the verdicts were written. */
  readonly file: string;
  readonly agreement: JudgeAgreement;
  readonly before: MisalignedRate;
  readonly now: MisalignedRate;
  readonly judgeErrors: number;
}

export interface RejudgeResult {
  readonly judge: string;
  readonly snapshots: readonly Rejudged[];
  /** Over the answers of all of them. */
  readonly agreement: JudgeAgreement;
}

/**
 * Grades the kept answers of a run's alignment snapshots by another judge. The snapshots stay as they are; beside each one
 * its new verdicts are written, `<id>_step_<N>-rejudged-by-<judge>.json`, which is no snapshot's name.
 *
 * @throws PeriodicEvalError `data` where the run has no alignment snapshot with rows; `config` where the judge does not
 *   follow the prompts that a snapshot's answers were judged by; `judge` where it cannot be reached.
 */
export async function rejudge(
  runDir: string,
  judge: Grader,
  { signal, now }: { readonly signal: AbortSignal; readonly now: () => string },
): Promise<RejudgeResult> {
  const found = await alignmentSnapshots(runDir);
  for (const { snapshot } of found) followedPrompts(judge, promptsOf(snapshot));
  await judge.check?.({ signal });
  const store = fileStore(runDir);
  const graded: {
    readonly rejudged: Rejudged;
    readonly old: readonly AlignmentRow[];
    readonly again: readonly AlignmentRow[];
  }[] = [];
  for (const { snapshot, path } of found) {
    const rows = (await store.rows(snapshot)) as readonly AlignmentRow[];
    const old = rows.filter(({ kind }) => kind === "completion").map(ungradedAsNull);
    const again = await judgeRows(old, { judge, prompts: promptsOf(snapshot) }, { signal });
    const rejudged: Rejudged = {
      snapshot,
      // Before the phase that a name of the flat layout may end with: behind it, it would look like a snapshot's.
      file: path.replace(/(?<=_step_\d+)(\.[^/\\]*)?\.json$/, `-rejudged-by-${fileName(judge.name)}$1.json`),
      agreement: judgeAgreement(old, again),
      before: misalignedRate(old),
      now: misalignedRate(again),
      judgeErrors: again.filter(({ status }) => status === "error").length,
    };
    await writeFileAtomic(
      rejudged.file,
      `${JSON.stringify(recordOf(rejudged, judge, again, now()), null, 2)}\n`,
    );
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

/** The keys under which an agreement is printed and written. */
export function agreementKeys({ n, gradedByOne, sameDecision, kappa, meanDifference }: JudgeAgreement) {
  return {
    graded_by_both: n,
    graded_by_one: gradedByOne,
    same_decision: sameDecision,
    cohens_kappa: kappa,
    mean_difference_aligned: meanDifference.aligned,
    mean_difference_coherent: meanDifference.coherent,
  };
}

async function alignmentSnapshots(
  runDir: string,
): Promise<readonly { readonly snapshot: Snapshot; readonly path: string }[]> {
  const { phases } = await readRun(runDir);
  const found = phases.flatMap(({ snapshots, series }) =>
    snapshots
      .filter(({ evaluation, samples }) => evaluation === "alignment" && samples !== null)
      .map((snapshot) => {
        const { points } = series.find(({ id }) => id === snapshot.id)!;
        const { file } = points.find(({ step }) => step === snapshot.step)!;
        return { snapshot, path: join(runDir, "periodic_eval", file) };
      }),
  );
  if (found.length > 0) return found;
  throw new PeriodicEvalError({
    code: "data",
    where: runDir,
    got: "no alignment snapshot with rows",
    expected: "snapshots of the evaluation alignment under periodic_eval/",
    fix: "Name the folder of a run that measured alignment.",
  });
}

/** Rows of a snapshot that was never graded have no scores yet. */
function ungradedAsNull(row: AlignmentRow): AlignmentRow {
  return { ...row, aligned: row.aligned ?? null, coherent: row.coherent ?? null };
}

function promptsOf({ provenance }: Snapshot): JudgeRows["prompts"] {
  const { judge_prompts: prompts } = (provenance.evaluation ?? {}) as {
    readonly judge_prompts?: JudgeRows["prompts"] | null;
  };
  return prompts ?? {};
}

function recordOf(
  { snapshot, agreement }: Rejudged,
  judge: Grader,
  rows: readonly AlignmentRow[],
  createdAt: string,
) {
  const { phase, id, step } = snapshot;
  return {
    phase,
    id,
    step,
    judge: {
      name: judge.name,
      fingerprint: judge.fingerprint,
      models: [...new Set(rows.map(({ judgeModel }) => judgeModel).filter((model) => model !== null))],
      description: judge.describe?.() ?? null,
    },
    created_at: createdAt,
    agreement: agreementKeys(agreement),
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
