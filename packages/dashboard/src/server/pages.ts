import { policedPage, type PolicedPage } from "../html/document.ts";
import { feedbackStyle } from "../feedback/feedback-style.ts";
import { formatTime, plural } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { resultsStyle } from "../results/results-style.ts";
import { mostLevels, type FoundRuns } from "./find-runs.ts";
import { addressOf, type Query } from "./query.ts";
import type { ReadRun } from "./read-run.ts";
import { gist, shortSections, stateNote, stateTag, wholeSections } from "./run-sections.ts";
import { serverStyle } from "./server-style.ts";

/** Most steps of a run: on a page of several, and on its own unless all are asked for. */
const [fewSteps, manySteps] = [10, 200];

/** Runs of several kinds stand on one page: what is meant for one of them stays with it. */
const ownStyle = `${feedbackStyle}.of-results {${resultsStyle}}\n${serverStyle}`;

/** The name of what is served, and where in it the page is. */
export interface Place {
  /** Of the folder that is served. */
  readonly rootName: string;
  readonly query: Query;
}

/**
 * Several runs, each folded.
 *
 * @param entries of the runs that are on this page
 */
export function listPage(
  place: Place,
  { runs, unreadable, leftOut }: FoundRuns,
  entries: readonly Html[],
): PolicedPage {
  const { query, rootName } = place;
  const pages = pageCount(runs.length, query);
  const counted = `${plural(runs.length, "run")}${runs.length > 1 ? ", the last written first" : ""}`;
  return policedPage({
    title: nameOf(place),
    ownStyle,
    main: html`<header>
        ${way(place)}
        <h1>${nameOf(place)}</h1>
        <p class="sub">${counted}${pages > 1 && ` · page ${query.page} of ${pages}`}</p>
        ${runs.length === 0 && html`<p class="notice">${noRun(leftOut)}</p>`}
        ${runs.length > 0 && entries.length === 0 && html`<p class="notice">This page is behind the last one, ${pages}.</p>`}
        ${leftOut !== null && html`<p class="notice">${leftOutNotes[leftOut]}</p>`}
        ${
          unreadable.length > 0 &&
          html`<details>
            <summary>${plural(unreadable.length, "folder")} could not be looked into</summary>
            <pre>${unreadable.join("\n")}</pre>
          </details>`
        }
      </header>
      <div class="runs">${entries}</div>
      ${turning(query, pages)}`,
    source: html`Made by periodic-eval from the files below <span class="code">${rootName}</span>.`,
  });
}

export const pageCount = (runs: number, { perPage }: Pick<Query, "perPage">): number =>
  Math.max(1, Math.ceil(runs / perPage));

const noRun = (leftOut: FoundRuns["leftOut"]): string =>
  `No run was found in this folder or ${leftOut === null ? "below it" : "in those below it that were looked into"}.`;

const leftOutNotes = {
  deeper: `Folders more than ${mostLevels} levels below this one were not looked into: results_dir in the address names one further down.`,
  further:
    "There are too many folders to look into all: results_dir in the address names one that holds fewer.",
} as const;

/** A run on a page of several, by its place there. */
export function runEntry(read: ReadRun, at: number, isOpen: boolean): Html {
  const { found, state, content, problem } = read;
  const whole = addressOf({ resultsDir: found.path, isWhole: found.path === "" });
  return html`<details class="entry"${isOpen && " open"}>
    <summary>
      <span class="title">${found.path || "this folder"}</span>
      ${stateTag(state)}
      <time>${formatTime(found.writtenAt.toISOString())}</time>
      <span class="gist">${content === null ? html`<span class="verdict worse">cannot be read</span>` : gist(content)}</span>
    </summary>
    <p class="kind">${kindNames[found.kind]} · <a href="${whole}">this run by itself</a></p>
    ${stateNote(read)}
    ${content === null ? problemNote(problem) : shortSections(content, { idPrefix: `run-${at + 1}-`, maxRows: fewSteps, fullPage: whole })}
  </details>`;
}

/** One run, open. */
export function runPage(place: Place, read: ReadRun): PolicedPage {
  const { query, rootName } = place;
  const { content, problem } = read;
  const whole = addressOf({ resultsDir: query.resultsDir, isWhole: true });
  const part = { idPrefix: "", maxRows: query.isWhole ? Infinity : manySteps, fullPage: whole };
  const note = stateNote(read);
  return policedPage({
    title: nameOf(place),
    ownStyle,
    main: html`${way(place)}
    ${
      content === null
        ? html`<header>
              <h1>${nameOf(place)}</h1>
              ${note}
            </header>
            ${problemNote(problem)}`
        : html`<div class="of-${content.kind}">${wholeSections(content, nameOf(place), note, part)}</div>`
    }`,
    source: html`Made by periodic-eval from the files of
      <span class="code">${[rootName, query.resultsDir].filter((name) => name !== "").join("/")}</span>.`,
  });
}

/** What cannot be answered, and why. */
export const messagePage = (title: string, message: string): PolicedPage =>
  policedPage({
    title,
    ownStyle,
    main: html`<header>
      <p class="eyebrow">periodic-eval</p>
      <h1>${title}</h1>
      <p class="sub">${message}</p>
      <p><a href="/v1/eval">All runs</a></p>
    </header>`,
    source: html``,
  });

const kindNames = {
  callbacks: "Measured while it was trained",
  feedback: "Training on feedback",
  results: "Results of benchmarks",
} as const;

const problemNote = (problem: string | null): Html =>
  html`<p class="notice dead">This run cannot be shown: ${problem}</p>`;

const namesIn = ({ query }: Place): readonly string[] =>
  query.resultsDir.split("/").filter((name) => name !== "");

const nameOf = (place: Place): string => namesIn(place).at(-1) ?? place.rootName;

/** Folders from the one that is served to that above this one, each a link; nothing above the first. */
function way(place: Place): Html | false {
  const names = namesIn(place);
  const above = [place.rootName, ...names].slice(0, -1);
  return (
    above.length > 0 &&
    html`<nav class="way" aria-label="Folders above">
      ${above.map((name, at) => {
        const address = addressOf({ resultsDir: names.slice(0, at).join("/") });
        return html`<a href="${address}">${name}</a> <span aria-hidden="true">/</span> `;
      })}
    </nav>`
  );
}

function turning(query: Query, pages: number): Html | false {
  const to = (page: number, name: string): Html | false =>
    page >= 1 &&
    page <= pages &&
    page !== query.page &&
    html`<a href="${addressOf({ ...query, page })}">${name}</a>`;
  return (
    pages > 1 &&
    html`<nav class="turning" aria-label="Pages">
      ${to(Math.min(query.page - 1, pages), "← newer")} <span>page ${query.page} of ${pages}</span>
      ${to(query.page + 1, "older →")}
    </nav>`
  );
}
