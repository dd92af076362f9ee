import type { Evidence, Snapshot } from "@periodic-eval/core";
import type { RunRecord } from "@periodic-eval/contracts";
import { humanizeName, missingValueText } from "../html/format.ts";
import { term } from "../html/glossary.ts";
import { html, type Html } from "../html/html.ts";
import { truncationNote, lastRows, type SectionOptions } from "../html/section-options.ts";
import { table } from "../html/table.ts";
import { narrowName } from "./narrow-name.ts";

/** Renders the evidence of each guard: what it observed before and after the measurements. */
export function receipts(run: RunRecord, options: SectionOptions): Html {
  const snapshots = run.phases.flatMap((phase) => phase.snapshots);
  const parts = [...new Set(snapshots.flatMap(({ receipt }) => receipt.map(({ part }) => part)))];
  return html`<section id="receipts">
    <h2>Receipts</h2>
    <p class="sub">
      Training pauses during a measurement. Guards observe the model and the training state before and after it. Equal
      fingerprints mean that the measurement left the observed part unchanged. The
      ${term("receipt")} of a measurement lists what they found.
    </p>
    ${
      parts.length === 0
        ? html`<p class="notice">
            No guards ran, so it is unknown whether the measurements disturbed training.
          </p>`
        : html`${table(
            "Receipts",
            columns,
            parts.map((part) => partRow(part, snapshots)),
          )}
          ${weightsDetails(snapshots, options)}`
    }
  </section>`;
}

const columns = [
  "part",
  "unchanged",
  "changed",
  "not observed",
  { heading: "last measurement, before → after" },
];

function partRow(part: string, snapshots: readonly Snapshot[]): Html {
  const evidence = snapshots.flatMap(({ receipt }) => receipt.filter((one) => one.part === part));
  const count = (intact: boolean | null) => evidence.filter((one) => one.intact === intact).length;
  const disturbed = count(false);
  const advisory = evidence.some((one) => one.advisory);
  return html`<tr>
    <th scope="row">${part}${advisory && html` <small>advisory</small>`}</th>
    <td>${count(true)} of ${evidence.length}</td>
    <td>
      ${disturbed > 0 ? html`<span class="verdict ${advisory ? "changed" : "worse"}">${disturbed}</span>` : "0"}
    </td>
    <td>${count(null)}</td>
    <td class="left code">${fingerprints(evidence.at(-1)!)}</td>
  </tr>`;
}

function fingerprints({ before, after, note }: Evidence): Html {
  const pair =
    before !== null && before === after
      ? html`${short(before)} <span class="same">= unchanged</span>`
      : html`${short(before)} → ${short(after)}`;
  return html`${before === null && after === null ? "" : pair}${note && html` <small>${note}</small>`}`;
}

function weightsDetails(snapshots: readonly Snapshot[], options: SectionOptions): Html | null {
  const known = snapshots.filter(({ weights }) => weights !== null);
  if (known.length === 0) return null;
  return html`<details>
    <summary>Fingerprint of the weights at every measurement</summary>
    ${table("Weights", weightsColumns, lastRows(known, options).map(weightsRow))}
    ${truncationNote(known.length, "measurement", options)}
  </details>`;
}

const weightsColumns = [
  "phase",
  { heading: "step", className: "wide" },
  { heading: "measured", className: "left wide" },
  { heading: "weights" },
];

const weightsRow = ({ phase, step, id, weights }: Snapshot): Html =>
  html`<tr>
    <th scope="row">${phase}${narrowName(id, step)}</th>
    <td class="wide">${step}</td>
    <td class="left wide">${humanizeName(id)}</td>
    <td class="left code">${weights}</td>
  </tr>`;

/** Shortens long fingerprints in the middle. The tooltip shows the full string. */
function short(text: string | null): Html {
  if (text === null) return html`${missingValueText}`;
  const cut = text.replaceAll(/\S{35,}/g, (word) => `${word.slice(0, 18)}…${word.slice(-10)}`);
  return cut === text ? html`${text}` : html`<span title="${text}">${cut}</span>`;
}
