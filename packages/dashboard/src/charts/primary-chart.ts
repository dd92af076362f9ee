import * as Plot from "@observablehq/plot";
import type { PhaseRecord, RunRecord } from "@periodic-eval/core/snapshots";
import { distinct, drawChart, phaseColour, valueDomain } from "./draw-chart.ts";
import { scaleOf } from "../html/format.ts";
import type { Html } from "../html/html.ts";
import { lookTitle, trackDescription } from "./measurement-text.ts";
import { hasValue, phaseEnd, runSteps, valuesIn, type Look, type Track } from "./metric-curves.ts";
import { verdictColour, verdictGlyph } from "../html/verdict.ts";

/** A chart is drawn twice, for wide and for narrow screens: scaling one would shrink its text. */
export interface ChartSize {
  readonly width: number;
  readonly height: number;
  readonly isNarrow: boolean;
}

/** The primary metric over the run: phases as bands, interval as ribbon and whiskers, the start as a rule, verdicts as words. */
export function primaryChart(run: RunRecord, track: Track, size: ChartSize): Html {
  const scale = scaleOf(track.unit);
  const looks = track.looks.filter(hasValue);
  const ends = looks.flatMap(({ value, ci95 }) => [value!, ...(ci95 ?? [])]).map((value) => value * scale);
  const isShare = track.unit === "share";
  const [low, high] = valueDomain(ends, {
    leastSpan: isShare ? 24 : 1e-9,
    bounds: isShare ? [0, 100] : [-Infinity, Infinity],
  });
  return drawChart(
    {
      width: size.width,
      height: size.height,
      marginTop: 34,
      marginRight: size.isNarrow ? 10 : 24,
      marginBottom: 40,
      marginLeft: size.isNarrow ? 40 : 56,
      x: {
        domain: [0, runSteps(run)],
        label: null,
        ticks: size.isNarrow ? 4 : 9,
        tickSize: 0,
        tickPadding: 9,
      },
      y: { domain: [low, high], label: null },
      marks: [
        phaseBands(run.phases, size),
        Plot.gridY({ ticks: 5, stroke: "var(--line)", strokeOpacity: 1 }),
        Plot.axisY({
          ticks: 5,
          tickSize: 0,
          tickFormat: (value: number) => (isShare ? `${value} %` : String(value)),
          fill: "var(--muted)",
          fontSize: 12,
        }),
        Plot.axisX({
          ticks: size.isNarrow ? 4 : 9,
          tickSize: 0,
          tickPadding: 9,
          fill: "var(--muted)",
          fontSize: 12,
          label: "run step →",
          labelAnchor: "right",
          labelOffset: 36,
        }),
        ...run.phases.flatMap((phase, index) => phaseMarks(phase, index, track)),
        verdictWords(run.phases, track, size),
      ],
    },
    { description: trackDescription(track) },
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
      frameAnchor: "top-left",
      textAnchor: "start",
      dx: 1,
      dy: -20,
      fontSize: 13,
      fontWeight: 600,
      fill: ({ index }) => phaseColour(index),
      text: ({ phase }) =>
        phase.name + (isNarrow || phase.maxSteps === null ? "" : `  ·  ${phase.maxSteps} steps`),
    }),
  ];
}

function phaseMarks(phase: PhaseRecord, index: number, track: Track): readonly Plot.Markish[] {
  const scale = scaleOf(track.unit);
  const looks = valuesIn(track, index);
  const bounded = looks.filter(({ ci95 }) => ci95 !== null);
  const start = baselineValue(track, looks.at(-1));
  const stroke = phaseColour(index);
  const low = ({ ci95 }: Look) => ci95![0] * scale;
  const high = ({ ci95 }: Look) => ci95![1] * scale;
  const place = { x: "runStep", y: ({ value }: Look) => value! * scale };
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
    Plot.areaY(bounded, { x: "runStep", y1: low, y2: high, fill: stroke, fillOpacity: 0.13 }),
    Plot.ruleX(distinct(bounded), {
      x: "runStep",
      y1: low,
      y2: high,
      stroke,
      strokeOpacity: 0.5,
      strokeWidth: 1.25,
    }),
    Plot.lineY(looks, { ...place, stroke, strokeWidth: 2.25 }),
    Plot.dot(distinct(looks), {
      ...place,
      r: 4.5,
      fill: (look: Look) => (look.status === "complete" ? stroke : "var(--panel)"),
      stroke,
      strokeWidth: 2,
    }),
    // A finger or a pointer needs more than the dot to rest on.
    Plot.dot(distinct(looks), {
      ...place,
      r: 14,
      fill: "transparent",
      title: (look: Look) => lookTitle(look, track),
    }),
  ];
}

/** The value that a look was compared with, found by the phase and step it names. */
function baselineValue({ looks }: Track, look: Look | undefined): number | null {
  const against = look?.baseline;
  if (!against) return null;
  return looks.find(({ phase, step }) => phase === against.phase && step === against.step)?.value ?? null;
}

/** As many as a drawing has room for. */
const mostWords = 24;

/** Words where something was found and at each phase's end; signs alone where words would collide. */
function verdictWords(phases: readonly PhaseRecord[], track: Track, { isNarrow }: ChartSize): Plot.Markish {
  const judged = phases.flatMap((_, index) => {
    const looks = valuesIn(track, index);
    return looks.flatMap((look) => {
      const verdict = look.baseline?.verdict;
      const isLast = look === looks.at(-1);
      return verdict && (isLast || verdict !== "no evidence") ? [{ look, verdict, isLast }] : [];
    });
  });
  type Judged = (typeof judged)[number];
  const scale = scaleOf(track.unit);
  const shared = {
    x: ({ look }: Judged) => look.runStep,
    y: ({ look }: Judged) => (look.ci95?.[1] ?? look.value!) * scale,
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
      distinct(
        judged.filter(({ isLast }) => !isLast),
        mostWords,
      ),
      { ...shared, text },
    ),
    // The last word of a phase ends at its edge, so that it stays out of the next phase and of the margin.
    Plot.text(
      judged.filter(({ isLast }) => isLast),
      { ...shared, text, textAnchor: "end", dx: 5 },
    ),
  ];
}
