import type { RunProblem, RunRecord } from "@periodic-eval/contracts";
import { html, type Html } from "../html/html.ts";
import { runState } from "./run-state.ts";
import { rowTable, type RowColumn } from "../html/table.ts";

/** Names of the kinds of problems, for people. */
export const problemNames: Readonly<Record<RunProblem["kind"], string>> = {
  unreadable: "unreadable",
  edited: "edited or damaged",
  rows: "damaged rows",
  unavailable: "not readable",
};

/** Whether a problem loses no measurement. */
const isMinor = (kind: RunProblem["kind"]): boolean => kind === "unavailable";

/**
 * Renders disturbed training, damaged files, incomplete measurements and advisories, the most severe first; null if there are none.
 * Superseded snapshots are listed until the run is finished.
 */
export function problems(run: RunRecord, idPrefix = ""): Html | null {
  const incomplete = run.phases
    .flatMap(({ snapshots }) => snapshots)
    .filter(({ status }) => status !== "complete")
    .map(({ phase, id, step, status, reason }) => ({
      where: `${phase}, ${id}, step ${step}`,
      problem: status,
      reason: reason ?? "",
    }));
  const receiptProblems = (kind: "broken" | "advisories", problem: string) =>
    run.phases.flatMap(({ name, series }) =>
      series.flatMap(({ id, points }) =>
        points.flatMap(({ step, receipt }) =>
          receipt[kind].map((part) => ({ where: `${name}, ${id}, step ${step}`, problem, reason: part })),
        ),
      ),
    );
  const fileProblems = (isSevere: boolean) =>
    run.problems
      .filter(({ kind }) => isMinor(kind) !== isSevere)
      .map(({ file, kind, message }) => ({ where: file, problem: problemNames[kind], reason: message }));
  const isFinished = runState(run).state === "finished";
  const superseded = (isFinished ? [] : run.superseded).map(({ file, why }) => ({
    where: file,
    problem: "superseded",
    reason: why ?? "",
  }));
  const rows = [
    ...receiptProblems("broken", "disturbed"),
    ...fileProblems(true),
    ...incomplete,
    ...receiptProblems("advisories", "advisory"),
    ...fileProblems(false),
    ...superseded,
  ];
  if (rows.length === 0) return null;
  const rank = (_row: unknown, at: number): number => -at;
  return html`<section id="${idPrefix}problems">
    <h2>Problems</h2>
    ${rowTable("Problems", rows, columns, { noun: "problem", rank })}
  </section>`;
}

const columns: readonly RowColumn<Readonly<Record<"where" | "problem" | "reason", string>>>[] = [
  ["where", ({ where }) => where],
  ["problem", ({ problem }) => problem, "left"],
  ["reason", ({ reason }) => reason, "left text"],
];
