import { answersStyle } from "../answers/answers-section.ts";
import { pageWithPolicy, type PageData, type PageWithPolicy } from "../html/document.ts";
import { feedbackStyle } from "../feedback/feedback-page.ts";
import { formatTime, plural } from "../html/format.ts";
import { html, type Html, type HtmlValue } from "../html/html.ts";
import { resultsStyle } from "../results/results-page.ts";
import { maxLevels, type FoundRun, type FoundRuns } from "./find-runs.ts";
import { runData } from "../run/run-data.ts";
import { overlayData, overlaySections, runSelection } from "../overlay/overlay-section.ts";
import { summarizeOverlay, type NamedRun } from "../overlay/summarize-overlay.ts";
import { addressOf, maxRuns, type Query } from "./query.ts";
import type { RunRecord } from "@periodic-eval/contracts";
import type { ReadRun } from "./read-run.ts";
import { sampledRun } from "../run/run-sections.ts";
import { runState } from "../run/run-state.ts";
import { stateNote, stateTag, wholeSections, type RunOfPage, serverStyle } from "./run-sections.ts";

/** Runs that a page offers for comparison. */
const selectableRuns = 200;

/** A page can show several kinds of runs. The style of benchmark results applies to these only. */
const extraStyle = `${answersStyle}${feedbackStyle}.of-results {${resultsStyle}}\n${serverStyle}`;

/** The served folder and the request for a page of it. */
export interface Place {
  /** Name of the served folder. */
  readonly rootName: string;
  readonly query: Query;
  /** Version of the folder before it was read. */
  readonly version: string;
}

/**
 * Renders a list of runs.
 *
 * @param entries The rendered runs of this page.
 */
export function listPage(
  view: Place,
  { runs, unreadable, unsearched }: FoundRuns,
  entries: readonly Html[],
): PageWithPolicy {
  const { query } = view;
  const pages = pageCount(runs.length, query);
  const counted = `${plural(runs.length, "run")}${runs.length > 1 ? ", newest first" : ""}`;
  return servedPage(
    view,
    html`<header>
        ${breadcrumbs(view)}
        <h1>${nameOf(view)}</h1>
        <p class="sub">${counted}${pages > 1 && ` · page ${query.page} of ${pages}`}${compareLink(runs)}</p>
        ${runs.length === 0 && html`<p class="notice">${noRun(unsearched)}</p>`}
        ${runs.length > 0 && entries.length === 0 && html`<p class="notice">There is no page ${query.page}: the last page is ${pages}.</p>`}
        ${unsearched !== null && html`<p class="notice">${unsearchedNotes[unsearched]}</p>`}
        ${
          unreadable.length > 0 &&
          html`<details>
            <summary>${plural(unreadable.length, "folder")} could not be read</summary>
            <pre>${unreadable.join("\n")}</pre>
          </details>`
        }
      </header>
      <div class="runs">${entries}</div>
      ${pageLinks(query, pages)}`,
  );
}

/** Links to the newest measured runs in the same charts; false for fewer than two. */
function compareLink(runs: FoundRuns["runs"]): Html | false {
  const measured = runs.filter(({ kind }) => kind === "callbacks").slice(0, maxRuns);
  if (measured.length < 2) return false;
  const address = addressOf({ runs: measured.map(({ path }) => path) });
  const which = measured.length < runs.length ? `the ${measured.length} newest measured runs` : "these runs";
  return html` · <a href="${address}">compare ${which}</a>`;
}

export const pageCount = (runs: number, { perPage }: Pick<Query, "perPage">): number =>
  Math.max(1, Math.ceil(runs / perPage));

const noRun = (unsearched: FoundRuns["unsearched"]): string =>
  unsearched === null
    ? "There are no runs in this folder or below it. This page shows a run as soon as it begins."
    : "There are no runs in this folder or in the searched folders below it.";

const unsearchedNotes = {
  tooDeep: `Folders more than ${maxLevels} levels below this one were not searched. To open a deeper folder, set results_dir in the address.`,
  tooMany:
    "There are too many folders to search them all. To search a smaller folder, set results_dir in the address.",
} as const;

/** Renders a run in the list of runs: a link to its page, its state and a line on its results. */
export function runEntry({ found, state }: Pick<ReadRun, "found" | "state">, results: HtmlValue): Html {
  return html`<article class="run">
    <a class="title" href="${fullPageOf(found)}">${found.path || "this folder"}</a> ${stateTag(state)}
    <time>${formatTime(found.writtenAt.toISOString())}</time>
    <p class="summary-line">${results}</p>
    <p class="kind">
      ${kindNames[found.kind]}. ${state.explanation}
      ${found.kind === "callbacks" && html`<a href="${addressOf({ runs: [found.path] })}">Compare with other runs</a>`}
    </p>
  </article>`;
}

const fullPageOf = ({ path }: FoundRun): string => addressOf({ resultsDir: path, isOneRun: path === "" });

/**
 * Renders the page of a run that has too many measurements to read them all at once. The script of the page requests the whole page
 * then.
 *
 * @param sample The run with some of its measurements.
 * @param total Number of all measurements.
 */
export function sampledPage(view: Place, run: FoundRun, sample: RunRecord, total: number): PageWithPolicy {
  const shown = sample.phases.reduce((sum, { snapshots }) => sum + snapshots.length, 0);
  const note = html`${stateNote({ found: run, state: runState(sample) })}
    <p class="notice" role="status">This page shows ${shown} of ${plural(total, "measurement")}, so that it opens at once. The others are being read and verified. <a href="${wholePageOf(view.query)}">Open the whole page</a>.</p>`;
  const main = html`${breadcrumbs(view)}
    <div class="of-callbacks">${sampledRun(sample, nameOf(view), note)}</div>`;
  return servedPage(view, main, { "run-data": runData(sample) }, "partial");
}

const wholePageOf = (query: Query): string => addressOf({ ...query, isWhole: true });

/** Renders the page of one run. */
export function runPage(view: Place, { read, answers }: RunOfPage): PageWithPolicy {
  const { content, problem } = read;
  const note = stateNote(read);
  const shown =
    content === null
      ? html`<header>
            <h1>${nameOf(view)}</h1>
            ${note}
          </header>
          ${problemNote(problem)}`
      : html`<div class="of-${content.kind}">${wholeSections(content, nameOf(view), note, answers)}</div>`;
  const data = {
    ...(content?.kind === "callbacks" && { "run-data": runData(content.run) }),
    ...(answers !== null && { "answers-data": answers.data }),
  };
  return servedPage(view, html`${breadcrumbs(view)} ${shown}`, data, "whole");
}

/**
 * Renders a page whose script follows changes.
 *
 * @param kind `partial`: the script requests the whole page of the run at once.
 */
function servedPage(
  view: Place,
  main: Html,
  data: PageData = {},
  kind: "runs" | "partial" | "whole" = "runs",
): PageWithPolicy {
  const { query, rootName, version } = view;
  const live = {
    address: `eval/version?${new URLSearchParams({ results_dir: query.resultsDir }).toString()}`,
    version,
    page: kind === "runs" ? addressOf(query) : wholePageOf(query),
    isPartial: kind === "partial",
  };
  const path = [rootName, query.resultsDir].filter((name) => name !== "").join("/");
  return pageWithPolicy({
    title: nameOf(view),
    extraStyle,
    isServed: true,
    data: { live, ...data },
    main,
    source: html`Generated by periodic-eval from the files below <span class="code">${path}</span>.`,
  });
}

/**
 * Renders several runs in one chart per metric, below the runs that can be selected.
 *
 * @param paths Paths of the runs that can be compared, newest first.
 */
export function overlayPage(
  view: Place,
  paths: readonly string[],
  runs: readonly NamedRun[],
): PageWithPolicy {
  const { query } = view;
  const metrics = summarizeOverlay(runs);
  const selected = query.runs ?? [];
  const selectable = paths.slice(0, selectableRuns).map((path) => {
    const isSelected = selected.includes(path);
    const next = isSelected ? selected.filter((other) => other !== path) : [...selected, path];
    const isFull = next.length > maxRuns;
    const address = next.length === 0 ? "?" : addressOf({ ...query, runs: isFull ? selected : next });
    return { name: path || "this folder", isSelected, address };
  });
  return servedPage(
    view,
    html`<header>
        <p class="eyebrow"><a href="?">All runs</a></p>
        <h1>${plural(runs.length, "run")} compared</h1>
        <p class="sub">The address of this page holds the selection, up to ${maxRuns} runs.</p>
      </header>
      <details${runs.length < 2 && " open"}><summary>Select runs</summary>${runSelection(selectable)}</details>
      ${overlaySections(metrics, runs)}`,
    { "run-data": overlayData(metrics, runs) },
  );
}

/** Renders the page for a request that the server cannot answer. */
export const messagePage = (title: string, message: string): PageWithPolicy =>
  pageWithPolicy({
    title,
    extraStyle,
    main: html`<header>
      <p class="eyebrow">periodic-eval</p>
      <h1>${title}</h1>
      <p class="sub">${message}</p>
      <p><a href="/v1/eval">All runs</a></p>
    </header>`,
    source: html``,
  });

const kindNames = {
  callbacks: "Measured during training",
  feedback: "Training on feedback",
  results: "Benchmark results",
} as const;

const problemNote = (problem: string | null): Html =>
  html`<p class="notice damaged">This run cannot be shown: ${problem}</p>`;

const namesIn = ({ query }: Place): readonly string[] =>
  query.resultsDir.split("/").filter((name) => name !== "");

const nameOf = (view: Place): string => namesIn(view).at(-1) ?? view.rootName;

/** Renders links to the folders above, up to the served one; false for the served folder. */
function breadcrumbs(view: Place): Html | false {
  const names = namesIn(view);
  const above = [view.rootName, ...names].slice(0, -1);
  return (
    above.length > 0 &&
    html`<nav class="breadcrumbs" aria-label="Folders above">
      ${above.map((name, at) => {
        const address = addressOf({ resultsDir: names.slice(0, at).join("/") });
        return html`<a href="${address}">${name}</a> <span aria-hidden="true">/</span> `;
      })}
    </nav>`
  );
}

function pageLinks(query: Query, pages: number): Html | false {
  const to = (page: number, name: string): Html | false =>
    page >= 1 &&
    page <= pages &&
    page !== query.page &&
    html`<a href="${addressOf({ ...query, page })}">${name}</a>`;
  return (
    pages > 1 &&
    html`<nav class="pagination" aria-label="Pages">
      ${to(Math.min(query.page - 1, pages), "← newer")} <span>page ${query.page} of ${pages}</span>
      ${to(query.page + 1, "older →")}
    </nav>`
  );
}
