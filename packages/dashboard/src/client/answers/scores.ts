import { judgeAgreement } from "@periodic-eval/core/evaluations";
import { drawChart, phaseColour } from "../../charts/chart.ts";
import { frames } from "../../charts/run-chart.ts";
import { formatInterval, formatValue, plural } from "../../html/format.ts";
import type { Html } from "../../html/html.ts";
import {
  isAnchor,
  isReadable,
  type AnswerRow,
  type AnswersData,
  type MeasurementAnswers,
} from "../../page-data/answers-data.ts";
import type { RunData } from "../../page-data/run-data.ts";
import { create, readDataBlock } from "../dom.ts";
import { latest } from "./controls.ts";
import { menu, textCell } from "../downloads.ts";
import type { AnswersSource } from "./source.ts";

/** Answers of a measurement that are drawn: the first ones, which are in random order. */
const maxAnswers = 400;

/** The judge's scores of the answers of a measurement, 0 to 100 each. */
interface Scores {
  readonly all: readonly (readonly [aligned: number, coherent: number])[];
  /** Number of all answers, also of those without both scores. */
  readonly total: number;
}

/** Returns the scores of a measurement's answers. A judge's anchors are no answers. */
export function scoresOf(rows: readonly AnswerRow[]): Scores {
  const answers = rows.filter((row) => !isAnchor(row));
  const all = answers.flatMap(({ grades }): Scores["all"] => {
    const { aligned, coherent } = Object.fromEntries(grades);
    return typeof aligned === "number" && typeof coherent === "number" ? [[aligned, coherent]] : [];
  });
  return { all, total: answers.length };
}

/** Width of a 95 % interval of κ that tells a fair judge from a good one. */
const usefulWidth = 0.4;

/** Says how well each judge agrees with the labels of a person, and how many more labels make the interval useful. */
export function agreementText(rows: readonly AnswerRow[]): string {
  const labelled = rows.flatMap(({ label, grades }) => (label === undefined ? [] : [{ label, grades }]));
  const judges = ["", "second "].filter((prefix) =>
    rows.some(({ grades }) => grades.some(([name]) => name === `${prefix}aligned`)),
  );
  const texts = judges.map((prefix) => {
    const graded = labelled.map(({ grades }) => {
      const of = (name: string) => grades.find(([key]) => key === `${prefix}${name}`)?.[1];
      const [aligned, coherent] = [of("aligned"), of("coherent")];
      return {
        aligned: typeof aligned === "number" ? aligned : null,
        coherent: typeof coherent === "number" ? coherent : null,
      };
    });
    const labels = labelled.map(({ label }) => label);
    const { n, kappa, ci95 } = judgeAgreement(labels, graded);
    const said = `The ${prefix}judge and ${plural(n, "label")}: `;
    if (kappa === null || ci95 === null)
      return `${said}κ is unknown until the labels or the grades hold two different decisions.`;
    const more = Math.ceil(n * ((ci95[1] - ci95[0]) / usefulWidth) ** 2) - n;
    const needed =
      more > 0 ? `about ${plural(more, "more label")} to narrow it to ${usefulWidth}` : "enough labels";
    return `${said}κ ${formatValue(kappa, "")}, 95 % interval ${formatInterval(ci95, "")}; ${needed}.`;
  });
  return labelled.length === 0 ? "No labels at this step yet." : texts.join(" ");
}

/** Returns the scores below and above which an answer is misaligned and coherent; null if the evaluation declares none. */
function regionOf({ declared: { flags = [] } }: MeasurementAnswers) {
  const conditions = flags.find(({ name }) => name === "misaligned")?.any[0] ?? {};
  const [below, above] = [conditions["aligned"]?.below, conditions["coherent"]?.above];
  return below === undefined || above === undefined ? null : { below, above };
}

/** Draws the scores of the first measurement of a callback, and of the one that a slider selects. */
export function browseScores(root: HTMLElement, source: AnswersSource): { readonly update: () => void } {
  const { parts } = readDataBlock<RunData>("run-data")!;
  const callback = root.dataset["scores"]!;
  const scores = async (entry: MeasurementAnswers) => scoresOf((await source.rows(entry, Infinity)).rows);
  let measurements: readonly MeasurementAnswers[] = [];

  const csv = async (): Promise<string> => {
    const rows: string[] = [];
    for (const entry of measurements)
      for (const both of (await scores(entry)).all)
        rows.push([textCell(entry.phase), entry.step, entry.runStep, textCell(callback), ...both].join(","));
    return `${["phase,step,run_step,callback,aligned,coherent", ...rows].join("\r\n")}\r\n`;
  };

  function figureOf(title: string, kind: "first" | "chosen") {
    const text = create("span", { class: "scatter-text" });
    const plot = create("div");
    const attributes = { class: "panel", "data-kind": kind };
    const element = create("figure", attributes, create("figcaption", {}, title, " ", text), plot);
    const name = `${kind} scores`;
    const svg = () => plot.firstElementChild as SVGSVGElement;
    element.append(menu({ svg, name: [callback, name], title: name, csv }));
    const show = async (entry: MeasurementAnswers): Promise<string> => {
      const points = await scores(entry);
      const said = scoresText(entry, points);
      text.textContent = said;
      plot.innerHTML = scatterPlot(entry, points, phaseColour(parts.indexOf(entry.phase))).markup;
      return said;
    };
    return { element, show };
  }

  const first = figureOf("First measurement", "first");
  const chosen = figureOf("Selected measurement", "chosen");
  const slider = create("input", { type: "range", min: "0", step: "1" });
  const showChosen = async (): Promise<void> => {
    const measurement = measurements[Number(slider.value)]!;
    slider.setAttribute("aria-valuetext", await chosen.show(measurement));
  };
  const fail = (message: string): void =>
    void (chosen.element.querySelector(".scatter-text")!.textContent = message);
  slider.addEventListener("input", latest(showChosen, fail));

  const show = async (): Promise<void> => {
    const isAtEnd = Number(slider.value) >= measurements.length - 1;
    const data = readDataBlock<AnswersData>("answers-data")!;
    measurements = (await source.measurements()).filter(
      (entry) => entry.id === callback && isReadable(entry, data) && hasScores(entry),
    );
    if (measurements.length === 0) return;
    slider.max = String(measurements.length - 1);
    if (isAtEnd) slider.value = slider.max;
    if (!root.hasChildNodes()) {
      const figures = create("div", { class: "multiples scatters" }, chosen.element);
      root.append(create("h3", {}, "Scores of the answers: aligned × coherent"), figures);
    }
    if (measurements.length > 1 && !slider.isConnected) {
      chosen.element.before(first.element);
      chosen.element.append(create("label", { class: "scatter-step" }, "Step", slider));
    }
    if (measurements.length > 1) await first.show(measurements[0]!);
    await showChosen();
  };
  const update = latest(show, fail);
  update();
  return { update };
}

const hasScores = ({ declared: { grades = [] } }: MeasurementAnswers): boolean =>
  grades.includes("aligned") && grades.includes("coherent");

/** Describes a measurement: `em step 80: 40 of 40 answers have both scores, 15 of them are misaligned and coherent.` */
export function scoresText(measurement: MeasurementAnswers, { all, total }: Scores): string {
  const drawn = all.slice(0, maxAnswers);
  const shown = drawn.length < all.length ? `; the first ${drawn.length} are shown` : "";
  const region = regionOf(measurement);
  const inRegion =
    region === null
      ? ""
      : `, ${drawn.filter(([aligned, coherent]) => aligned < region.below && coherent > region.above).length} of them are misaligned and coherent`;
  return `${measurement.phase} step ${measurement.step}: ${all.length} of ${total} answers have both scores${shown}${inRegion}.`;
}

function scatterPlot(measurement: MeasurementAnswers, scores: Scores, colour: string): Html {
  const region = regionOf(measurement);
  return drawChart({
    frame: frames.narrow,
    description: `Alignment and coherence scores. ${scoresText(measurement, scores)}`,
    x: { to: 100, ticks: 4, label: "aligned →" },
    y: { ticks: 4, text: String, label: "↑ coherent", minSpan: 100, bounds: [0, 100] },
    bands: region
      ? [
          {
            to: region.below,
            above: region.above,
            colour: "var(--worse)",
            fillOpacity: 0.1,
            name: "misaligned",
          },
        ]
      : [],
    series: [{ colour, radius: 4.5, points: scores.all.slice(0, maxAnswers).map(([x, y]) => ({ x, y })) }],
  });
}
