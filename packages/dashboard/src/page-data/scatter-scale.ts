import type { RunData, ScatterData, ScoredMeasurement } from "./run-data.ts";

/** Size of a scatter plot in units of its view box, and the place of its axes. */
export const scatterSize = { width: 360, height: 300, left: 40, right: 350, top: 10, bottom: 262 } as const;

const { left, right, top, bottom } = scatterSize;

/** Returns the horizontal place of a score from 0 to 100. */
export const alignedX = (score: number): number => left + (score / 100) * (right - left);

/** Returns the vertical place of a score from 0 to 100. */
export const coherentY = (score: number): number => bottom - (score / 100) * (bottom - top);

/** Describes a measurement: `em step 80: 40 of 40 answers have both scores, 15 are misaligned and coherent.` */
export function scatterText(
  { misalignedBelow, coherentAbove }: ScatterData,
  { part, step, answers, scored, total }: ScoredMeasurement,
  parts: RunData["parts"],
): string {
  const shown = answers.length < scored ? `; the first ${answers.length} are shown` : "";
  const inRegion =
    misalignedBelow === null || coherentAbove === null
      ? ""
      : `, ${answers.filter(([aligned, coherent]) => aligned < misalignedBelow && coherent > coherentAbove).length} of them are misaligned and coherent`;
  return `${parts[part] ?? ""} step ${step}: ${scored} of ${total} answers have both scores${shown}${inRegion}.`;
}
