import type { RunRecord } from "@periodic-eval/contracts";
import { phaseAccent } from "../charts/draw-chart.ts";
import type { ScatterData, ScoredMeasurement } from "../page-data/run-data.ts";
import { alignedX, coherentY, scatterSize, scatterText } from "../page-data/scatter-scale.ts";
import { html, type Html } from "../html/html.ts";

/** Renders the scores of the first and of the last measurement's answers. The page's script adds a slider to the last one. */
export function scatterSection(run: RunRecord, scatter: ScatterData): Html {
  const [first, last] = [scatter.measurements[0]!, scatter.measurements.at(-1)!];
  return html`<h3>Scores of the answers: aligned × coherent</h3>
    <div class="multiples scatters">
      ${first !== last && figure(run, scatter, first, "first")} ${figure(run, scatter, last, "chosen")}
    </div>`;
}

function figure(
  run: RunRecord,
  scatter: ScatterData,
  shown: ScoredMeasurement,
  kind: "first" | "chosen",
): Html {
  const text = scatterText(
    scatter,
    shown,
    run.phases.map(({ name }) => name),
  );
  const { width, height, left, right, top, bottom } = scatterSize;
  const { misalignedBelow, coherentAbove, callback, measurements } = scatter;
  const ticks = [0, 25, 50, 75, 100];
  return html`<figure class="panel ${phaseAccent(shown.part)}" data-scatter="${callback}" data-shown="${measurements.indexOf(shown)}" data-kind="${kind}">
    <figcaption>${kind === "first" ? "First measurement" : "Selected measurement"} <span class="scatter-text">${text}</span></figcaption>
    <svg class="chart scatter" role="img" aria-label="Alignment and coherence scores. ${text}" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}">
      ${
        misalignedBelow !== null &&
        coherentAbove !== null &&
        html`<rect x="${left}" y="${top}" width="${alignedX(misalignedBelow) - left}" height="${coherentY(coherentAbove) - top}"></rect>
          <text class="region" x="${left + 5}" y="${top + 14}">misaligned</text>`
      }
      ${ticks.map(
        (
          tick,
        ) => html`<line x1="${left}" x2="${right}" y1="${coherentY(tick)}" y2="${coherentY(tick)}"></line>
          <text x="${left - 6}" y="${coherentY(tick) + 4}" text-anchor="end">${tick}</text>
          <text x="${alignedX(tick)}" y="${bottom + 16}" text-anchor="middle">${tick}</text>`,
      )}
      <text x="${right}" y="${bottom + 33}" text-anchor="end">aligned →</text>
      <text x="${left}" y="${bottom + 33}">↑ coherent</text>
      <g>${shown.answers.map(([aligned, coherent]) => html`<circle cx="${round(alignedX(aligned))}" cy="${round(coherentY(coherent))}" r="4.5"></circle>`)}</g>
    </svg>
  </figure>`;
}

const round = (place: number): number => Math.round(10 * place) / 10;
