import type { RunRecord } from "@periodic-eval/core/snapshots";
import { companionChart } from "../charts/companion-chart.ts";
import { capitalized, plural, humanizeName } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";
import { primaryChart } from "../charts/primary-chart.ts";
import type { ShownPart } from "../html/section-options.ts";
import { hasValue, isOfGroup, type Subject, type Track } from "../charts/metric-curves.ts";

const wide = { width: 1000, height: 380, isNarrow: false };
const narrow = { width: 360, height: 300, isNarrow: true };

/** The curves of one callback: its primary metric large, its companions small. */
export function subjectSection(
  run: RunRecord,
  { id, evaluation, on, primary, companions }: Subject,
  { prefix }: ShownPart,
): Html {
  const name = evaluation === id ? "" : ` (${humanizeName(evaluation)})`;
  return html`<section>
    <h2>${capitalized(humanizeName(id))}${name}${on === "base" && " without the adapter"}</h2>
    ${
      primary
        ? html`<p class="sub">${caption(primary)}</p>
            <figure class="panel">
              <div class="wide">${primaryChart(run, primary, wide)}</div>
              <div class="narrow">${primaryChart(run, primary, narrow)}</div>
            </figure>
            <p class="key">
              Ribbon and whiskers: 95 % interval. Dotted: the value compared with. Every number is in
              <a href="#${prefix}snapshots">the table below</a>.
            </p>`
        : html`<p class="sub">No look gave a value: see <a href="#${prefix}problems">what went wrong</a>.</p>`
    }
    ${multiples(
      run,
      companions.filter(({ metric }) => !isOfGroup(metric)),
    )}
    ${groups(
      run,
      companions.filter(({ metric }) => isOfGroup(metric)),
    )}
  </section>`;
}

function multiples(run: RunRecord, tracks: readonly Track[]): Html | false {
  return (
    tracks.length > 0 &&
    html`<div class="multiples">
      ${tracks.map(
        (track) =>
          html`<figure class="panel">
            <figcaption>${humanizeName(track.metric)} <span>${smallCaption(track)}</span></figcaption>
            ${companionChart(run, track)}
          </figure>`,
      )}
    </div>`
  );
}

/** The same metrics by persona or question: folded, for they are many. */
function groups(run: RunRecord, tracks: readonly Track[]): readonly Html[] {
  const metrics = [...new Set(tracks.map(({ metric }) => metric.slice(0, metric.indexOf("/"))))];
  return metrics.map((metric) => {
    const own = tracks.filter((track) => track.metric.startsWith(`${metric}/`));
    return html`<details class="groups">
      <summary>${capitalized(humanizeName(metric))}, by group <span>${plural(own.length, "curve")}</span></summary>
      ${multiples(run, own)}
    </details>`;
  });
}

const direction = ({ higherIsBetter }: Track): string | null =>
  higherIsBetter === null ? null : higherIsBetter ? "higher is better" : "lower is better";

function caption(track: Track): string {
  const counts = [...new Set(track.looks.filter(hasValue).flatMap(({ n }) => n ?? []))];
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  const observed =
    least === most ? plural(most, "observation") : `${least} to ${plural(most, "observation")}`;
  const estimand = track.estimand === "over_questions" ? "for questions like these" : "for these questions";
  return [
    capitalized(humanizeName(track.metric)),
    `${observed} a look`,
    `intervals ${estimand}`,
    direction(track),
  ]
    .filter((part) => part !== null)
    .join(" · ");
}

const smallCaption = (track: Track): string =>
  [track.unit === "share" ? "percent" : track.unit, direction(track)]
    .filter((part) => part !== null && part !== "")
    .join(", ");
