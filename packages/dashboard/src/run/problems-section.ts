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
export function problems(run: RunRecord): Html | null {
  const nameOf = (phase: string, id: string, step: number): string => `${phase}, ${id}, step ${step}`;
  const incomplete = run.phases
    .flatMap(({ snapshots }) => snapshots)
    .filter(({ status }) => status !== "complete")
    .map(({ phase, id, step, status, reason }): Problem => [nameOf(phase, id, step), status, reason]);
  const ofReceipts = (kind: "broken" | "advisories", problem: string): readonly Problem[] =>
    run.phases.flatMap(({ name, series }) =>
      series.flatMap(({ id, points }) =>
        points.flatMap(({ step, receipt }) =>
          receipt[kind].map((part): Problem => [nameOf(name, id, step), problem, part]),
        ),
      ),
    );
  const ofFiles = (isSevere: boolean): readonly Problem[] =>
    run.problems
      .filter(({ kind }) => isMinor(kind) !== isSevere)
      .map(({ file, kind, message }) => [file, problemNames[kind], message]);
  const superseded = runState(run).state === "finished" ? [] : run.superseded;
  const rows = [
    ...ofReceipts("broken", "disturbed"),
    ...ofFiles(true),
    ...incomplete,
    ...ofReceipts("advisories", "advisory"),
    ...ofFiles(false),
    ...superseded.map(({ file, why }): Problem => [file, "superseded", why]),
  ];
  if (rows.length === 0) return null;
  const rank = (_row: Problem, at: number): number => -at;
  return html`<section id="problems">
    <h2>Problems</h2>
    ${rowTable("Problems", rows, columns, { noun: "problem", rank })}
  </section>`;
}

type Problem = readonly [where: string, problem: string, reason: string | null];

const columns: readonly RowColumn<Problem>[] = [
  ["where", ([where]) => where],
  ["problem", ([, problem]) => problem, "left"],
  ["reason", ([, , reason]) => reason, "left text"],
];
