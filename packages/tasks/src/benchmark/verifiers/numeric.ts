import type { Json } from "@periodic-eval/core";
import type { VerifierArgs } from "@periodic-eval/core/grading";
import { numberIn, numberOf } from "./expression.ts";
import { extractor, nothingExtracted, verifierError, short, type VerifierKind } from "./verifier.ts";

/**
 * Passes if the completion's number equals the answer within tolerances, like Python's `math.isclose`:
 * |a − b| ≤ max(rel_tol · max(|a|, |b|), abs_tol). The number is the whole completion if that is a number or an expression (`1/2`,
 * `2*sqrt(3)`), or else the last number or fraction in it. Thousands may have commas (`1,200,000`), and the decimal point is a
 * dot; digits grouped in other ways (`1 000 000`, `1.000.000`, `1'000`, `3,5`) are not numbers.
 */
export const numeric: VerifierKind = {
  version: "2",
  args: ["abs_tol", "extract", "rel_tol"],
  async open({ answer, args }) {
    const extract = extractor(args);
    const [relTol, absTol] = [toleranceOf(args, "rel_tol", 1e-9), toleranceOf(args, "abs_tol", 0)];
    const right = await rightOf(answer);
    return async (completion) => {
      const said = extract(completion);
      if (said === null) return nothingExtracted;
      const number = await numberIn(said);
      if (number === null) return "no number";
      const allowed = Math.max(relTol * Math.max(Math.abs(number), Math.abs(right)), absTol);
      if (Math.abs(number - right) <= allowed) return null;
      return `${number} is not ${short(answer)} (rel_tol ${relTol}, abs_tol ${absTol})`;
    };
  },
};

async function rightOf(answer: Json): Promise<number> {
  const number = typeof answer === "string" ? await numberOf(answer) : answer;
  if (typeof number === "number" && Number.isFinite(number)) return number;
  throw verifierError("answer", answer, 'a number, or an expression such as "1/2"', "Write the number.");
}

function toleranceOf(args: VerifierArgs, key: "rel_tol" | "abs_tol", otherwise: number): number {
  const { [key]: given = otherwise } = args;
  if (typeof given === "number" && given >= 0) return given;
  throw verifierError(`args.${key}`, given, "a number of 0 or more", `Leave it out for ${otherwise}.`);
}
