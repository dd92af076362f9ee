import { html, type Html } from "../html/html.ts";
import { withLimits, type ResultsMetric } from "./summarize-results.ts";

const [width, height, margin] = [190, 26, 6];

/** Draws one run's value and interval on the scale of all runs, with the reference run's value as a line. */
export function intervalPlot({ measured }: ResultsMetric, run: number, reference: number | null): Html {
  const limits = measured.map(withLimits);
  const ends = limits.flatMap(({ value, ci95 }) => [...(value === null ? [] : [value]), ...(ci95 ?? [])]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const span = high - low || 1;
  const x = (value: number): string => (margin + ((value - low) / span) * (width - 2 * margin)).toFixed(1);
  const { value, ci95 } = limits[run]!;
  if (value === null) return html`<td class="plot"></td>`;
  const base = reference === null ? null : limits[reference]!.value;
  return html`<td class="plot">
    <svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" aria-hidden="true">
      ${base !== null && html`<line class="of-reference" x1="${x(base)}" x2="${x(base)}" y1="0" y2="${height}" />`}
      ${
        ci95 &&
        html`<line
          x1="${x(ci95[0])}"
          x2="${x(ci95[1])}"
          y1="${height / 2}"
          y2="${height / 2}"
          stroke="currentColor"
          stroke-width="1.5"
        />`
      }
      <circle cx="${x(value)}" cy="${height / 2}" r="4" fill="currentColor" />
    </svg>
  </td>`;
}
