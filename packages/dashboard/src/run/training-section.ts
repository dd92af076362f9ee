import type { RunRecord } from "@periodic-eval/contracts";
import { trainingChart } from "../charts/training-chart.ts";
import { trainingCurves } from "../charts/training-curves.ts";
import { html, type Html } from "../html/html.ts";

/** Renders what the trainer logged: losses, learning rate and speed; false if it logged nothing. */
export function trainingSection(run: RunRecord): Html | false {
  const curves = trainingCurves(run);
  return (
    curves.length > 0 &&
    html`<section id="training">
      <h2>Training</h2>
      <p class="sub">Logged by the trainer, on the same axis of run steps as the measurements.</p>
      <div class="multiples">
        ${curves.map(
          (curve) =>
            html`<figure class="panel">
              <figcaption>${curve.name}${curve.unit !== "" && html` <span>${curve.unit}</span>`}</figcaption>
              ${trainingChart(run, curve)}
            </figure>`,
        )}
      </div>
    </section>`
  );
}
