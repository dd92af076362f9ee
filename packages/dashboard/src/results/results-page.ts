import { basename, dirname, resolve } from "node:path";
import { htmlDocument } from "../html/document.ts";
import { formatTime, plural, missingValueText } from "../html/format.ts";
import { factList } from "../html/fact-list.ts";
import { html, type Html } from "../html/html.ts";
import { table } from "../html/table.ts";
import { isMap, ownValue } from "../html/json-field.ts";
import { resultsStyle } from "./results-style.ts";
import { runCell, scoreCell } from "./cells.ts";
import type { ResultsSummary } from "./summarize-results.ts";
import { taskSection } from "./task-section.ts";

/**
 * One self-contained HTML file that makes no request: runs beside each other, task by task, with standard errors and changes.
 *
 * @param path of the `metrics.json`; its folder is the page's name
 */
export function renderResults(summary: ResultsSummary, path: string): string {
  const { runs } = summary;
  const name = basename(dirname(resolve(path)));
  return htmlDocument({
    title: name,
    ownStyle: resultsStyle,
    main: html`${resultsHeader(summary, name, null)} ${resultsSections(summary)}`,
    source: html`Made by periodic-eval from ${plural(runs.length, "run")} in <span class="code">${path}</span>.`,
  });
}

/** What a page shows of runs of a suite below its header. */
export const resultsSections = (summary: ResultsSummary): Html =>
  html`${summary.tasks.length > 1 && overview(summary)}
  ${summary.tasks.map((task) => taskSection(summary, task))} ${runTable(summary)}`;

/** Which suite was measured, how often, and when. */
export function resultsHeader(
  { runs, reference, tasks }: ResultsSummary,
  name: string,
  note: Html | null,
): Html {
  const [first] = runs;
  const suite = first?.suite ?? null;
  const seed = isMap(suite) ? ownValue(suite, "seed") : undefined;
  const isSmoke = isMap(suite) && ownValue(suite, "smoke") === true;
  const times = runs.map(({ timestamp }) => timestamp).toSorted();
  const facts: readonly (readonly [string, string | Html])[] = [
    ["Suite", first === undefined ? missingValueText : (first.config_path ?? "no file")],
    ["Its hash", first?.config_hash ?? missingValueText],
    ["Runs", String(runs.length)],
    ["Tasks", tasks.map((task) => task.name).join(", ") || missingValueText],
    ["Seed", typeof seed === "number" ? String(seed) : missingValueText],
    ["Changes are against", reference === null ? "nothing: one run" : runs[reference]!.name],
    [
      "First and last run",
      times.length === 0 ? missingValueText : list([...new Set([times[0]!, times.at(-1)!])].map(formatTime)),
    ],
  ];
  return html`<header>
    <p class="eyebrow">periodic-eval · results</p>
    <h1>${name}</h1>
    ${note} ${runs.length === 0 && html`<p class="notice">No run has come to its end yet.</p>`}
    ${
      isSmoke &&
      html`<p class="notice">
        Smoke runs: ten documents of each task show that everything runs, and tell no two models apart.
      </p>`
    }
    ${factList(facts)}
  </header>`;
}

/** A line for each. */
const list = (parts: readonly string[]): Html =>
  html`${parts.map((part, at) => [at > 0 && html`<br />`, html`<span class="whole">${part}</span>`])}`;

function overview(summary: ResultsSummary): Html {
  const { tasks, order, reference } = summary;
  const shown = tasks.filter(({ metrics }) => metrics.length > 0);
  const rows = order.map(
    (at) => html`<tr>
      ${runCell(summary, at)} ${shown.map(({ metrics }) => scoreCell(metrics[0]!.measured[at]!))}
    </tr>`,
  );
  return html`<section>
    <h2>All tasks</h2>
    <p class="sub">
      Each task by its first metric, value ± standard error. Runs stand in the order of their mean rank over the tasks.
      ${reference !== null && changeKey}
    </p>
    ${table("All tasks", [{ words: "run" }, ...shown.map(({ name }) => name)], rows)}
  </section>`;
}

const changeKey = html`Below a value is its change against the reference: ▲ better, ▼ worse, ○ no evidence at 95 %, each by
itself. Where samples of both runs stand beside the file, changes are of pairs of answers to one question, and say so under the
pointer; all others are as of two independent samples, whose intervals are wider than they need be.`;

function runTable(summary: ResultsSummary): Html {
  const rows = summary.order.map((at) => {
    const { method, model, adapter, timestamp, run_hash: hash } = summary.runs[at]!;
    return html`<tr>
      ${runCell(summary, at)}
      <td class="words">${method ?? missingValueText}</td>
      <td class="words code">${model}</td>
      <td class="words code">${adapter ?? missingValueText}</td>
      <td class="words">${formatTime(timestamp)}</td>
      <td class="words code">${hash ?? missingValueText}</td>
    </tr>`;
  });
  const columns = ["run", "method", "model", "adapter", "begun", "hash of all that changes a number"];
  return html`<section>
    <h2>Runs</h2>
    ${table(
      "Runs",
      columns.map((words) => ({ words })),
      rows,
    )}
  </section>`;
}
