import type { RunRecord } from "@periodic-eval/core/snapshots";
import { html, type Html } from "../html/html.ts";
import { truncationNote, firstRows, type SectionOptions } from "../html/section-options.ts";
import { table } from "../html/table.ts";

/** What did not go as planned, the gravest first; nothing where all did. */
export function problems(run: RunRecord, part: SectionOptions): Html | null {
  const firings = run.phases
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
  const aside = run.superseded.map(({ file, why }) => ({ where: file, what: "set aside", why: why ?? "" }));
  const rows = [
    ...proven("broken", "disturbed"),
    ...filesThatAre(true, "unreadable"),
    ...firings,
    ...proven("advisories", "advisory"),
    ...filesThatAre(false, "not used"),
    ...aside,
  ];
  if (rows.length === 0) return null;
  return html`<section id="${part.prefix}problems">
    <h2>What did not go as planned</h2>
    ${table("Problems", ["where", { words: "what" }, { words: "why" }], firstRows(rows, part).map(problemRow))}
    ${truncationNote(rows.length, "problem", part, "first")}
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
