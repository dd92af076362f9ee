import type { RunRecord } from "@periodic-eval/core/snapshots";
import { html, type Html } from "./html.ts";
import { cutNote, lastOf, type ShownPart } from "./shown-part.ts";
import { table } from "./table.ts";

/** What did not go as planned; nothing where all did. */
export function problems(run: RunRecord, part: ShownPart): Html | null {
  const firings = run.phases
    .flatMap(({ snapshots }) => snapshots)
    .filter(({ status }) => status !== "complete")
    .map(({ phase, id, step, status, reason }) => ({
      where: `${phase}, ${id}, step ${step}`,
      what: status,
      why: reason ?? "",
    }));
  const disturbed = run.phases.flatMap(({ name, series }) =>
    series.flatMap(({ id, points }) =>
      points.flatMap(({ step, receipt: { broken, advisories } }) => [
        ...broken.map((part) => ({ where: `${name}, ${id}, step ${step}`, what: "disturbed", why: part })),
        ...advisories.map((part) => ({ where: `${name}, ${id}, step ${step}`, what: "advisory", why: part })),
      ]),
    ),
  );
  const files = run.problems.map(({ file, message, invalid }) => ({
    where: file,
    what: invalid ? "unreadable" : "not used",
    why: message,
  }));
  const aside = run.superseded.map(({ file, why }) => ({ where: file, what: "set aside", why: why ?? "" }));
  const rows = [...disturbed, ...firings, ...files, ...aside];
  if (rows.length === 0) return null;
  return html`<section id="${part.prefix}problems">
    <h2>What did not go as planned</h2>
    ${table("Problems", ["where", { words: "what" }, { words: "why" }], lastOf(rows, part).map(problemRow))}
    ${cutNote(rows.length, "problem", part)}
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
