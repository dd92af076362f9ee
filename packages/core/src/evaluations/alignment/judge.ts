import type { Grader } from "@periodic-eval/contracts";
import { parseOptions } from "@periodic-eval/contracts/options";
import { graderSchema } from "../../grading/grader-schema.ts";
import type { AlignmentOptions } from "./options.ts";

/** The judge of an evaluation, opened once, at its first use. */
export interface EvaluationJudge {
  open(): Promise<Grader>;
  /** Name of the opened judge. */
  name(): string;
  /** Whether the judge may have a check. */
  readonly mayCheck: boolean;
  /** Disposes the judge if this evaluation opened it. */
  close(): Promise<void>;
}

export function judgeOf(given: AlignmentOptions["judge"]): EvaluationJudge {
  let opened = typeof given === "function" ? null : given;
  const open = async () => {
    if (opened !== null) return opened;
    const judge = await (given as () => Grader | Promise<Grader>)();
    parseOptions("the result of the function `judge`", graderSchema, judge);
    return (opened = judge);
  };
  return {
    open,
    name: () => opened!.name,
    async close() {
      if (typeof given === "function") await opened?.dispose?.();
    },
    mayCheck: typeof given === "function" || given.check !== undefined,
  };
}
