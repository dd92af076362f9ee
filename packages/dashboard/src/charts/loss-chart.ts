import * as Plot from "@observablehq/plot";
import type { RunRecord } from "@periodic-eval/core/snapshots";
import type { Html } from "../html/html.ts";
import { drawChart, phaseColour, thinOut, valueDomain } from "./draw-chart.ts";
import { phaseEnd, runSteps } from "./metric-curves.ts";

/** A loss that a trainer logged. */
export interface LoggedLoss {
  /** Completed optimizer steps of the phase. */
  readonly step: number;
  readonly loss: number;
}

/** Draws the training losses of a run's phases, with the x axis of the primary charts. */
export function lossChart(run: RunRecord, losses: ReadonlyMap<string, readonly LoggedLoss[]>): Html {
  const all = [...losses.values()].flat().map(({ loss }) => loss);
  return drawChart(
    {
      width: 1000,
      height: 200,
      marginTop: 8,
      marginRight: 8,
      marginBottom: 24,
      marginLeft: 40,
      x: { domain: [0, runSteps(run)], label: null },
      y: { domain: valueDomain(all, { minSpan: 1e-9, bounds: [-Infinity, Infinity] }), label: null },
      marks: [
        Plot.gridY({ ticks: 3, stroke: "var(--line)", strokeOpacity: 1 }),
        Plot.axisY({ ticks: 3, tickSize: 0, fill: "var(--muted)", fontSize: 11 }),
        Plot.axisX({
          ticks: 6,
          tickSize: 0,
          tickPadding: 7,
          fill: "var(--muted)",
          fontSize: 11,
          label: null,
        }),
        ...run.phases.map((phase, index) =>
          Plot.lineY(
            thinOut(losses.get(phase.name) ?? [], 1000).filter(
              ({ step }) => phase.runStepOffset + step <= phaseEnd(phase),
            ),
            {
              x: ({ step }: LoggedLoss) => phase.runStepOffset + step,
              y: "loss",
              stroke: phaseColour(index),
              strokeWidth: 1.5,
            },
          ),
        ),
      ],
    },
    {
      description: `The training loss of ${[...losses.keys()].join(", ")} by step, as the trainer logged it.`,
    },
  );
}
