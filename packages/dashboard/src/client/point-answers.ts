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
  /** Returns the link at a run step; null without answers. If two phases share the run step, prefers the next phase. */
  linkAt(runStep: number | null): string | null;
  /** Returns the link of a point; null without answers. */
  linkOf(point: PointData | undefined): string | null;
  /** Returns the point that a circle shows; undefined for other elements. */
  pointOf(target: EventTarget | null): PointData | undefined;
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
    // Without a circle for each point, it is unknown which point a circle shows.
    const isPaired = circles.length === drawn.length;
    const pointOf = new Map<EventTarget | null, PointData>(
      isPaired ? circles.map((circle, at) => [circle, drawn[at]!]) : [],
    );
    for (const circle of circles) circle.toggleAttribute("data-opens", linkOf(pointOf.get(circle)) !== null);
    const linked = points.filter((point) => linkOf(point) !== null);
    return {
      hasAny: linked.length > 0,
      linkAt: (runStep) => linkOf(linked.findLast((point) => point.runStep === runStep)),
      linkOf,
      pointOf: (target) => pointOf.get(target),
    };
  };
}

/** A file can leave out the answers of some measurements. */
const isReadable = ({ packed, problem }: MeasurementAnswers, { address }: AnswersData): boolean =>
  problem === null && (packed !== undefined || address !== null);
