import type { RunRecord, SeriesPoint } from "@periodic-eval/core/snapshots";
import { phaseAccent } from "./chart-frame.ts";
import { formatDelta, formatInterval, formatSeconds, formatValue, unknown, words } from "./format.ts";
import { html, type Html } from "./html.ts";
import { table } from "./table.ts";
import { verdictTag } from "./verdict.ts";

/** Every firing with its primary metric: the charts in words and numbers. */
export function snapshotTable(run: RunRecord): Html {
  const rows = run.phases.flatMap((phase, index) =>
    phase.series.flatMap((series) =>
      series.points.map((point) => row(phase.name, index, series.id, series.primaryMetric, point)),
    ),
  );
  return html`<section id="snapshots">
    <h2>All measurements</h2>
    ${table("All measurements", columns, rows)}
  </section>`;
}

const columns = [
  "phase",
  "step",
  "%",
  { words: "measured" },
  "value",
  "95 % interval",
  "n",
  "change",
  "paired items",
  { words: "verdict" },
  "time",
  { words: "undisturbed" },
  { words: "status" },
];

const receiptWords = { true: "yes", false: "no", null: "not proven" } as const;

function row(
  phase: string,
  phaseIndex: number,
  id: string,
  primaryMetric: string | null,
  point: SeriesPoint,
): Html {
  const metric = primaryMetric === null ? undefined : point.metrics[primaryMetric];
  const unit = metric?.unit ?? "";
  const paired = primaryMetric === null ? null : (point.paired.baseline?.[primaryMetric] ?? null);
  const { intact } = point.receipt;
  return html`<tr class="${phaseAccent(phaseIndex)}">
    <th scope="row"><span class="phase">${phase}</span></th>
    <td>${point.step}</td>
    <td>${point.pct === null ? unknown : Math.round(point.pct)}</td>
    <td class="words">${words(id)}</td>
    <td><strong>${formatValue(metric?.value, unit)}</strong></td>
    <td>${formatInterval(metric?.ci95, unit)}</td>
    <td>${metric?.n ?? unknown}</td>
    <td>${formatDelta(paired?.delta, unit)}</td>
    <td>${paired?.n_pairs ?? unknown}</td>
    <td class="words">${verdictTag(paired) ?? unknown}</td>
    <td>${formatSeconds(point.seconds)}</td>
    <td class="words">
      ${intact === false ? html`<span class="verdict worse">no: ${point.receipt.broken.join(", ")}</span>` : receiptWords[`${intact}`]}
    </td>
    <td class="words">${point.status}</td>
  </tr>`;
}
