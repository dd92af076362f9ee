import * as Plot from "@observablehq/plot";
import type { PhaseRecord, RunRecord } from "@periodic-eval/contracts";
import {
  drawChart,
  phaseColour,
  largeAxes,
  largeChart,
  type ChartSize,
  phaseLabel,
  intervalMarks,
} from "./draw-chart.ts";
import { evenly } from "../page-data/run-data.ts";
import { scaleOf } from "../html/format.ts";
import type { Html } from "../html/html.ts";
import {
  phaseText,
  measurementTitle,
  curveDescription,
  curveKey,
  hasValue,
  phaseEnd,
  runSteps,
  valuesIn,
  type Measurement,
  type MetricCurve,
} from "./metric-curves.ts";
import { verdictColour, verdictGlyph } from "../html/verdict.ts";

/** Draws the primary metric over the run: phases as bands, intervals as a ribbon with whiskers, the baseline as a dotted line, and verdicts. */
export function primaryChart(run: RunRecord, curve: MetricCurve, size: ChartSize): Html {
  const scale = scaleOf(curve.unit);
  const measurements = curve.measurements.filter(hasValue);
  const ends = measurements
    .flatMap(({ value, ci95 }) => [value!, ...(ci95 ?? [])])
    .map((value) => value * scale);
  return drawChart(
    {
      ...largeChart(ends, { steps: runSteps(run), unit: curve.unit, size }),
      marks: [
        phaseBands(run.phases, size),
        ...largeAxes(curve.unit, size),
        ...run.phases.flatMap((phase, index) => phaseMarks(phase, index, curve)),
        verdictLabels(run.phases, curve, size),
      ],
    },
    { description: curveDescription(curve), curve: curveKey(curve.callback, curve.metric) },
  );
}

function phaseBands(phases: readonly PhaseRecord[], { isNarrow }: ChartSize): Plot.Markish {
  const bands = phases.map((phase, index) => ({
    phase,
    index,
    x1: phase.runStepOffset,
    x2: phaseEnd(phase),
  }));
  return [
    Plot.rect(bands, { x1: "x1", x2: "x2", fill: ({ index }) => phaseColour(index), fillOpacity: 0.06 }),
    Plot.ruleX(bands, { x: "x1", stroke: ({ index }) => phaseColour(index), strokeOpacity: 0.35 }),
    Plot.text(bands, {
      x: "x1",
      ...phaseLabel,
      fill: ({ index }) => phaseColour(index),
      text: ({ phase }) =>
        phase.name + (isNarrow || phase.maxSteps === null ? "" : `  ·  ${phaseText(phase)}`),
    }),
  ];
}

function phaseMarks(phase: PhaseRecord, index: number, curve: MetricCurve): readonly Plot.Markish[] {
  const scale = scaleOf(curve.unit);
  const measurements = valuesIn(curve, index);
  const bounded = measurements.filter(({ ci95 }) => ci95 !== null);
  const start = baselineValue(curve, measurements.at(-1));
  const stroke = phaseColour(index);
  const low = ({ ci95 }: Measurement) => ci95![0] * scale;
  const high = ({ ci95 }: Measurement) => ci95![1] * scale;
  const place = { x: "runStep", y: ({ value }: Measurement) => value! * scale };
  return [
    start === null
      ? null
      : Plot.ruleY([start * scale], {
          x1: phase.runStepOffset,
          x2: phaseEnd(phase),
          stroke,
          strokeDasharray: "2 4",
          strokeOpacity: 0.9,
        }),
    ...intervalMarks(measurements, { scale, stroke, fillOpacity: 0.13 }),
    Plot.ruleX(evenly(bounded), {
      x: "runStep",
      y1: low,
      y2: high,
      stroke,
      strokeOpacity: 0.5,
      strokeWidth: 1.25,
    }),
    Plot.lineY(measurements, { ...place, stroke, strokeWidth: 2.25 }),
    Plot.dot(evenly(measurements), {
      ...place,
      r: 4.5,
      fill: (measurement: Measurement) => (measurement.status === "complete" ? stroke : "var(--panel)"),
      stroke,
      strokeWidth: 2,
    }),
    // A larger transparent circle makes the tooltip easier to reach with a pointer or a finger.
    Plot.dot(evenly(measurements), {
      ...place,
      r: 14,
      fill: "transparent",
      title: (measurement: Measurement) => measurementTitle(measurement, curve),
    }),
  ];
}

/** Whether the chart of a curve has a dotted line in any phase. */
export const hasBaseline = (run: RunRecord, curve: MetricCurve): boolean =>
  run.phases.some((_, index) => baselineValue(curve, valuesIn(curve, index).at(-1)) !== null);

/** Returns the baseline value of a measurement, found by the phase and step that its comparison names. */
function baselineValue({ measurements }: MetricCurve, measurement: Measurement | undefined): number | null {
  const against = measurement?.baseline;
  if (!against) return null;
  return (
    measurements.find(({ phase, step }) => phase === against.phase && step === against.step)?.value ?? null
  );
}

const maxVerdicts = 24;

/** Labels points with their verdict: every verdict except `no evidence`, and the last one of each phase. Narrow charts show only glyphs. */
function verdictLabels(
  phases: readonly PhaseRecord[],
  curve: MetricCurve,
  { isNarrow }: ChartSize,
): Plot.Markish {
  const judged = phases.flatMap((_, index) => {
    const measurements = valuesIn(curve, index);
    return measurements.flatMap((measurement) => {
      const verdict = measurement.baseline?.verdict;
      const isLast = measurement === measurements.at(-1);
      return verdict && (isLast || verdict !== "no evidence") ? [{ measurement, verdict, isLast }] : [];
    });
  });
  type Judged = (typeof judged)[number];
  const scale = scaleOf(curve.unit);
  const shared = {
    x: ({ measurement }: Judged) => measurement.runStep,
    y: ({ measurement }: Judged) => (measurement.ci95?.[1] ?? measurement.value!) * scale,
    fill: ({ verdict }: Judged) => verdictColour(verdict),
    dy: -11,
    fontSize: 12,
    fontWeight: 600,
    stroke: "var(--panel)",
    strokeWidth: 3,
  };
  if (isNarrow) return Plot.text(judged, { ...shared, text: ({ verdict }: Judged) => verdictGlyph(verdict) });
  const text = ({ verdict }: Judged) => `${verdictGlyph(verdict)} ${verdict}`;
  return [
    Plot.text(
      evenly(
        judged.filter(({ isLast }) => !isLast),
        maxVerdicts,
      ),
      { ...shared, text },
    ),
    // Right-align the last verdict of a phase, to keep it out of the next phase and of the margin.
    Plot.text(
      judged.filter(({ isLast }) => isLast),
      { ...shared, text, textAnchor: "end", dx: 5 },
    ),
  ];
}
