import * as Plot from "@observablehq/plot";
import type { RunRecord } from "@periodic-eval/contracts";
import { evenly } from "../page-data/evenly.ts";
import { scaleOf } from "../html/format.ts";
import type { Html } from "../html/html.ts";
import { intervalMarks } from "./interval-marks.ts";
import { measurementTitle, curveDescription } from "./measurement-text.ts";
import { curveKey, hasValue, valuesIn, type Measurement, type MetricCurve } from "./metric-curves.ts";
import { smallChart } from "./small-chart.ts";

/** Draws a secondary metric as a small chart. */
export function companionChart(run: RunRecord, curve: MetricCurve): Html {
  const scale = scaleOf(curve.unit);
  const measured = curve.measurements.filter(hasValue);
  const hasGaps = measured.some(({ ci95 }) => ci95 === null);
  const values = measured
    .flatMap(({ value, ci95 }) => [value!, ...(ci95 ?? [])])
    .map((value) => value * scale);
  return smallChart(run, {
    values,
    unit: curve.unit,
    minSpan: 1e-9,
    description: curveDescription(curve),
    curve: curveKey(curve.callback, curve.metric),
    marksOf(_phase, index, stroke) {
      const measurements = valuesIn(curve, index);
      const place = { x: "runStep", y: ({ value }: Measurement) => value! * scale };
      return [
        ...intervalMarks(measurements, { scale, stroke, fillOpacity: 0.15, hasGaps }),
        Plot.lineY(measurements, { ...place, stroke, strokeWidth: 1.75 }),
        Plot.dot(evenly(measurements), { ...place, r: 2.5, fill: stroke }),
        Plot.dot(evenly(measurements), {
          ...place,
          r: 10,
          fill: "transparent",
          title: (measurement: Measurement) => measurementTitle(measurement, curve),
        }),
      ];
    },
  });
}
