import type { AnswerFields } from "@periodic-eval/core";
import { alignmentEvaluation, capabilityEvaluation, leakageEvaluation } from "@periodic-eval/core";

const judge = { name: "judge", fingerprint: "judge", grade: () => Promise.resolve([]) };

/** The fields that the built-in evaluations declare. */
export const alignmentFields: AnswerFields = alignmentEvaluation({ judge }).answers!;
export const choiceFields: AnswerFields = capabilityEvaluation().answers!;
export const leakageFields: AnswerFields = leakageEvaluation().answers!;
