import type { RunRecord } from "@periodic-eval/core/snapshots";
import { html, type Html } from "../html/html.ts";
import { truncationNote, firstRows, type SectionOptions } from "../html/section-options.ts";
import { table } from "../html/table.ts";

/** Renders disturbed training, damaged files, incomplete measurements and advisories, the most severe first; null if there are none. */
export function problems(run: RunRecord, options: SectionOptions): Html | null {
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
  const fileProblems = (isInvalid: boolean, problem: string) =>
    run.problems
      .filter(({ invalid }) => invalid === isInvalid)
      .map(({ file, message }) => ({ where: file, problem, reason: message }));
  const superseded = run.superseded.map(({ file, why }) => ({
    where: file,
    problem: "superseded",
    reason: why ?? "",
  }));
  const rows = [
    ...receiptProblems("broken", "disturbed"),
    ...fileProblems(true, "unreadable"),
    ...incomplete,
    ...receiptProblems("advisories", "advisory"),
    ...fileProblems(false, "not used"),
    ...superseded,
  ];
  if (rows.length === 0) return null;
  return html`<section id="${options.idPrefix}problems">
    <h2>Problems</h2>
    ${table("Problems", ["where", { heading: "problem" }, { heading: "reason" }], firstRows(rows, options).map(problemRow))}
    ${truncationNote(rows.length, "problem", options, "first")}
  </section>`;
}

const problemRow = ({
  where,
  problem,
  reason,
}: {
  readonly where: string;
  readonly problem: string;
  readonly reason: string;
}): Html =>
  html`<tr>
    <th scope="row">${where}</th>
    <td class="left">${problem}</td>
    <td class="left text">${reason}</td>
  </tr>`;
