import { type AnswersData, isReadable, hashOf } from "../page-data/answers-data.ts";
import { pointText } from "../charts/run-chart.ts";
import type { PointData } from "../page-data/run-data.ts";
import { openHash } from "./answers/answer-selection.ts";
import { nearestStep, type Chart, type DrawnCharts } from "./chart.ts";
import { create, createSvg, readDataBlock } from "./dom.ts";

/**
 * Shows the values of all charts at one run step: at the pointer, at a finger, or at the step that the arrow keys select on a focused
 * chart. A vertical line marks the step in every chart. A click on a point, or Enter, opens the answers of its measurement.
 */
export function startCrossHair({ data, charts }: DrawnCharts): void {
  const linksOf = findAnswers(data);
  const marked = charts.map((chart) => markedChart(chart, linksOf(chart), data));
  const show = (runStep: number | null): void => {
    for (const chart of marked) chart.mark(runStep);
  };
  let selected: number | null = null;
  for (const figure of marked) {
    const { chart } = figure;
    const select = (runStep: number): void => {
      selected = nearestStep(chart.points, runStep);
      show(selected);
    };
    const { svg } = chart;
    // Where circles overlap, the topmost is not always the nearest. Its values are shown, because a click opens its answers.
    const stepAt = ({ clientX, target }: PointerEvent): number =>
      chart.pointOf(target)?.runStep ?? chart.runStepAt(clientX);
    svg.addEventListener("pointermove", (event) => {
      // The target of a finger that moves remains the circle that it touched first.
      select(event.pointerType === "mouse" ? stepAt(event) : chart.runStepAt(event.clientX));
    });
    let pressed: EventTarget | null = null;
    svg.addEventListener("pointerdown", (event) => {
      const before = figure.step;
      select(stepAt(event));
      // A finger cannot hover: its first tap shows the values.
      pressed = event.pointerType !== "touch" || figure.step === before ? event.target : null;
    });
    svg.addEventListener("click", ({ target }) => {
      if (target === pressed) open(target);
      pressed = null;
    });
    svg.addEventListener("pointerleave", ({ pointerType }) => {
      if (pointerType === "mouse" && document.activeElement !== svg) show(null);
    });
    svg.addEventListener("focus", () => select(selected ?? data.steps));
    svg.addEventListener("blur", () => show(null));
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Enter") open(svg);
      const next = stepAfterKey(event.key, chart, selected);
      if (next === undefined) return;
      event.preventDefault();
      if (next === null) show(null);
      else select(next);
    });
  }
}

/** Returns the step that a key selects, null to hide the values, undefined for other keys. */
function stepAfterKey(key: string, { points }: Chart, selected: number | null): number | null | undefined {
  const steps = [...new Set(points.map(({ runStep }) => runStep))];
  const at = selected === null ? -1 : steps.indexOf(nearestStep(points, selected)!);
  const [before, after] = [steps[Math.max(0, at - 1)], steps[Math.min(steps.length - 1, at + 1)]];
  const [arrows, ends] = [
    { ArrowLeft: before, ArrowDown: before, ArrowRight: after, ArrowUp: after },
    { Home: steps[0], End: steps.at(-1) },
  ];
  return new Map(Object.entries({ ...arrows, ...ends, Escape: null })).get(key);
}

/** Opens the answers to which an element leads. */
function open(element: EventTarget | null): void {
  const link = element instanceof SVGElement ? element.dataset["opens"] : undefined;
  if (link !== undefined) openHash(link);
}

function setLink(element: Element, link: string | null): void {
  if (link === null) element.removeAttribute("data-opens");
  else element.setAttribute("data-opens", link);
}

/** Returns the link from a chart's point to the answers of its measurement; null for a point without answers. */
type LinkOf = (point: PointData | undefined) => string | null;

/** Returns a function that finds the answers of a chart's points on this page. */
function findAnswers({ parts }: DrawnCharts["data"]): (chart: Chart) => LinkOf {
  const answers = readDataBlock<AnswersData>("answers-data");
  const linkTo = (phase: string, id: string, step: number): string => hashOf("answers", { phase, id, step });
  const stored = new Set(
    (answers?.measurements ?? [])
      .filter((measurement) => isReadable(measurement, answers!))
      .map(({ phase, id, step }) => linkTo(phase, id, step)),
  );
  return ({ curve: { callback } }) =>
    (point) => {
      if (point === undefined || callback === null) return null;
      const link = linkTo(parts[point.part]!, callback, point.step);
      return stored.has(link) ? link : null;
    };
}

interface MarkedChart {
  readonly chart: Chart;
  /** The marked step; null while the values are hidden. */
  step: number | null;
  /** Marks the nearest step that the chart has a value of; removes the mark if there is none. */
  mark(runStep: number | null): void;
}

function markedChart(chart: Chart, linkOf: LinkOf, data: DrawnCharts["data"]): MarkedChart {
  const { svg, figure, curve, points, x } = chart;
  const height = svg.viewBox.baseVal.height;
  const line = createSvg("line", { class: "cross-hair", y1: 0, y2: height - 20, visibility: "hidden" });
  svg.append(line);
  const readout = figure.querySelector(".readout") ?? create("p", { class: "readout" });
  figure.append(readout);
  const linked = points.filter((point) => linkOf(point) !== null);
  for (const circle of svg.querySelectorAll("[data-at]")) setLink(circle, linkOf(chart.pointOf(circle)));
  // The accessible name of the chart stays the description of its curve.
  for (const [name, value] of Object.entries({
    role: "slider",
    tabindex: "0",
    "aria-valuemin": "0",
    "aria-valuemax": String(data.steps),
    "aria-valuenow": String(points.at(-1)?.runStep ?? 0),
    "aria-valuetext": `Arrow keys show the values of ${curve.name} by step`,
    ...(linked.length > 0 && { "aria-description": "Enter opens the answers of the selected step" }),
  }))
    svg.setAttribute(name, value);
  return {
    chart,
    step: null,
    mark(runStep) {
      const step = runStep === null ? null : nearestStep(points, runStep);
      this.step = step;
      // If two phases share the step, prefers the next phase.
      setLink(svg, linkOf(linked.findLast((point) => point.runStep === step)));
      line.setAttribute("visibility", step === null ? "hidden" : "visible");
      if (step === null) return void (readout.textContent = "");
      for (const end of ["x1", "x2"]) line.setAttribute(end, String(x(step)));
      // Two where one phase ends and the next begins, one of each run.
      const marked = points.filter((point) => point.runStep === step);
      const text = marked.map((point) => pointText(point, curve, data)).join("; ");
      if (readout.textContent !== text) readout.textContent = text;
      svg.setAttribute("aria-valuenow", String(step));
      svg.setAttribute("aria-valuetext", text);
    },
  };
}
