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
      what: status,
      why: reason ?? "",
    }));
  const proven = (kind: "broken" | "advisories", what: string) =>
    run.phases.flatMap(({ name, series }) =>
      series.flatMap(({ id, points }) =>
        points.flatMap(({ step, receipt }) =>
          receipt[kind].map((part) => ({ where: `${name}, ${id}, step ${step}`, what, why: part })),
        ),
      ),
    );
  const filesThatAre = (isInvalid: boolean, what: string) =>
    run.problems
      .filter(({ invalid }) => invalid === isInvalid)
      .map(({ file, message }) => ({ where: file, what, why: message }));
  const superseded = run.superseded.map(({ file, why }) => ({
    where: file,
    what: "superseded",
    why: why ?? "",
  }));
  const rows = [
    ...proven("broken", "disturbed"),
    ...filesThatAre(true, "unreadable"),
    ...incomplete,
    ...proven("advisories", "advisory"),
    ...filesThatAre(false, "not used"),
    ...superseded,
  ];
  if (rows.length === 0) return null;
  return html`<section id="${options.idPrefix}problems">
    <h2>Problems</h2>
    ${table("Problems", ["where", { words: "problem" }, { words: "reason" }], firstRows(rows, options).map(problemRow))}
    ${truncationNote(rows.length, "problem", options, "first")}
  </section>`;
}

const problemRow = ({
  where,
  what,
  why,
}: {
  readonly where: string;
  readonly what: string;
  readonly why: string;
}): Html =>
  html`<tr>
    <th scope="row">${where}</th>
    <td class="words">${what}</td>
    <td class="words text">${why}</td>
  </tr>`;
