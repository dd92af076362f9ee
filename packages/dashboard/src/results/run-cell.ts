import { formatTime } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import type { ResultsSummary } from "./summarize-results.ts";

/** A run's name as the head of its row; with its time where another has the name too. */
export function runCell({ runs, reference }: ResultsSummary, at: number): Html {
  const { name, timestamp } = runs[at]!;
  const isOneOfSeveral = runs.filter((run) => run.name === name).length > 1;
  return html`<th scope="row" class="run">
    <span class="${at === reference && "reference"}">${name}</span>
    ${isOneOfSeveral && html`<small>${formatTime(timestamp)}</small>`}
    ${at === reference && html`<small>reference</small>`}
  </th>`;
}
