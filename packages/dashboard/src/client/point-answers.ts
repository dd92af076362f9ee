import type { AnswersData, MeasurementAnswers } from "../page-data/answers-data.ts";
import { evenly } from "../page-data/evenly.ts";
import { hashOf } from "../page-data/hash.ts";
import type { PointData, RunData } from "../page-data/run-data.ts";
import type { Chart } from "./chart.ts";
import { readDataBlock } from "./read-data-block.ts";

/** The links from a chart's points to the answers of their measurements. */
export interface PointAnswers {
  /** Whether the page has the answers of any point. */
  readonly hasAny: boolean;
  /** Returns the link at a run step; null without answers. Where one phase ends and the next begins: of the clicked point, or the next phase. */
  linkAt(runStep: number | null, clicked?: EventTarget | null): string | null;
  /** Whether an element is the circle of a point. */
  isPoint(target: EventTarget | null): boolean;
}

/** Returns a function that finds the answers of a chart's points on this page. */
export function findAnswers({ parts }: RunData): (chart: Chart) => PointAnswers {
  const answers = readDataBlock<AnswersData>("answers-data");
  const linkTo = (phase: string, id: string, step: number): string => hashOf("answers", { phase, id, step });
  const stored = new Set(
    (answers?.measurements ?? [])
      .filter((one) => isReadable(one, answers!))
      .map(({ phase, id, step }) => linkTo(phase, id, step)),
  );
  return ({ svg, curve: { callback }, points }) => {
    const linkOf = (point: PointData | undefined): string | null => {
      if (point === undefined || callback === null) return null;
      const link = linkTo(parts[point.part]!, callback, point.step);
      return stored.has(link) ? link : null;
    };
    // The server draws a circle for each of these points, in this order.
    const drawn = parts.flatMap((_, part) => evenly(points.filter((point) => point.part === part)));
    const circles = [...svg.querySelectorAll('g[fill="transparent"] > circle')];
    return {
      hasAny: points.some((point) => linkOf(point) !== null),
      linkAt(runStep, clicked) {
        const here = points.filter((point) => point.runStep === runStep && linkOf(point) !== null);
        const point = here.find((one) => one === drawn[circles.findIndex((circle) => circle === clicked)]);
        return linkOf(point ?? here.at(-1));
      },
      isPoint: (target) => circles.some((circle) => circle === target),
    };
  };
}

/** A file can leave out the answers of some measurements. */
const isReadable = ({ packed, problem }: MeasurementAnswers, { address }: AnswersData): boolean =>
  problem === null && (packed !== undefined || address !== null);
