import type { RunRecord } from "@periodic-eval/contracts";
import { measurementCount } from "@periodic-eval/core/console";
import { phaseAccent } from "../charts/chart.ts";
import { formatInterval, formatTime, missingValueText, humanizeName, jsonField } from "../html/format.ts";
import { factList } from "../html/table.ts";
import type { RunAnswers } from "../answers/read-answers.ts";
import { term } from "../html/glossary.ts";
import { html, type Html } from "../html/html.ts";
import { formatMeasurement, phaseText } from "../charts/metric-curves.ts";
import { formatCost } from "./phase-table.ts";
import { formatChange, summarizePhases, type MetricSummary } from "./phase-summary.ts";
import { notFinished, runState } from "./run-state.ts";
import { summarySection } from "./summary-section.ts";
import { verdictTag, voidTag } from "../html/verdict.ts";

/**
 * Renders the run's name and its summary.
 *
 * @param answers The answers to which the summary links.
 */
export function runHeader(
  run: RunRecord,
  name: string,
  note: Html | null,
  answers: RunAnswers | null = null,
): Html {
  return html`<header>
      <p class="eyebrow">periodic-eval · training run</p>
      <h1>${name}</h1>
      ${note} ${summarySection(run, answers)}
    </header>`;
}

/** Renders one card for each primary metric of each phase; false if there are none. A run with one phase does not name it. */
export function findings(run: RunRecord): Html | false {
  const cards = summarizePhases(run).flatMap(({ phase, phaseIndex, metrics }) =>
    metrics
      .filter(({ isPrimary }) => isPrimary)
      .map((metric) => findingCard(run.phases.length > 1 ? phase.name : null, phaseIndex, metric)),
  );
  return (
    cards.length > 0 && html`<section class="cards" role="group" aria-label="Results">${cards}</section>`
  );
}

/** Renders a note on the process that writes the run, on the interruption that ended it, or on phases that were not trained; null without any. */
export function writerNote(run: RunRecord): Html | null {
  const explanation = notFinished(run);
  if (explanation === null) return null;
  const isOver = ["interrupted", "finished"].includes(runState(run).state);
  const when = isOver ? "" : " This was the state when the page was generated.";
  return html`<p class="notice">${explanation}${when}</p>`;
}

/** Renders the results of a run with snapshots, and its state, model, seed, cost and times. */
export function overview(run: RunRecord): Html {
  const snapshots = run.phases.flatMap((phase) => phase.snapshots);
  const [first, last] = [snapshots.at(0)!, snapshots.at(-1)!];
  // Skipped snapshots do not record the model.
  const { model } = (snapshots.find(({ provenance }) => provenance.hash !== null) ?? first).provenance;
  const phaseTexts = run.phases.map((phase) => `${phase.name} (${phaseText(phase)})`);
  const engine = [jsonField(model, "engine"), jsonField(model, "dtype")].filter((part) => part !== null);
  const facts = factList([
    ["State", runState(run).state],
    run.phases.length === 1 ? ["Training", phaseText(run.phases[0]!)] : ["Phases", list(phaseTexts, " → ")],
    ["Model", modelName(jsonField(model, "name") ?? missingValueText)],
    ["Engine", engine.join(", ") || missingValueText],
    ["Seed", first.provenance.seed],
    [term("measurement", "Measurements"), measurementCount(snapshots)],
    [term("overhead", "Overhead"), list(overheads(run), html`<br /> `)],
    [
      "First and last snapshot",
      list(
        [first, last].map((one) => formatTime(one.created_at)),
        html`<br />`,
      ),
    ],
  ]);
  return html`<section id="overview"><h2>Overview</h2>${findings(run)} ${facts}</section>`;
}

/** Renders a model's name; of a path its last folder, with the path as the tooltip. Provenance shows it too. */
function modelName(name: string): Html | string {
  const isPath = /^[./\\]|[/\\].*[/\\]/.test(name);
  return isPath
    ? html`<span title="${name}">${name.split(/[/\\]/).findLast((part) => part !== "")}</span>`
    : name;
}

/** Returns what measuring cost in each phase: `5.07 s, overhead 18.4 % (em)`. A run of one phase does not name it. */
const overheads = ({ phases }: RunRecord): readonly string[] =>
  phases.map((phase) => (phases.length === 1 ? formatCost(phase) : `${formatCost(phase)} (${phase.name})`));

/** Joins parts with a separator. Lines break between parts, not inside them. */
function list(parts: readonly string[], separator: Html | string): Html {
  return html`${parts.map((part, index) => html`${index > 0 && separator}<span class="unbroken">${part}</span>`)}`;
}

function findingCard(phase: string | null, phaseIndex: number, summary: MetricSummary): Html {
  const { id, metric, unit, start, end, isSingle, change, against, source, voidReason, warnings } = summary;
  return html`<article class="card ${phaseAccent(phaseIndex)}">
    <h3>${phase !== null && html`<span class="phase">${phase}</span> `}${humanizeName(id)}</h3>
    ${
      source !== null &&
      html`<p class="detail">
      source ${!isSingle && `${formatMeasurement(source.start, unit)} → `}${formatMeasurement(source.end, unit)}; other personas:
    </p>`
    }
    <p class="figure">
      ${
        !isSingle &&
        html`<span class="from">${formatMeasurement(start, unit)}</span> <span aria-label="to">→</span>`
      }
      ${formatMeasurement(end, unit)}
    </p>
    ${warnings.map((message) => html`<p class="detail warning">${message}</p>`)}
    <p class="detail">
      ${
        voidReason !== null
          ? html`${voidTag(voidReason)}<br />${voidReason}`
          : change
            ? html`${formatChange(summary)}
              <span class="interval">${formatInterval(change.ci95, unit)}</span> ${verdictTag({ ...change, alpha: null })}
              ${against && html`<small>against ${against}</small>`}`
            : html`${humanizeName(metric)}${isSingle && ` at step ${end.step}`}
              <span class="interval">${formatInterval(end.ci95, unit)}</span>`
      }
    </p>
  </article>`;
}
