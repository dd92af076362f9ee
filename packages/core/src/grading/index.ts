/** The parts of graders: judge replies, the rule for refusals, verdict caches, and verifiers from modules. */
export type { JudgePrice } from "./judge/judge-calls.ts";
export { findJsonObjects, findJsonValues, type FoundObject, type FoundValue } from "./judge/json-objects.ts";
export { scoreFromTokens } from "./judge/logprob-method.ts";
export type { JudgeMethodName } from "./judge/judge-method.ts";
export { judgePromptNames } from "./judge/prompts.ts";
export {
  customVerifier,
  findVerifier,
  type VerifierResult,
  type Verifier,
  type VerifierArgs,
  type VerifierTask,
} from "./verifier.ts";
export { gradeRefusal, refusalJudge, refusalJudgePrompt, type RefusalGrade } from "./refusal-rule.ts";
export { graderSchema } from "./grader-schema.ts";
export { importJudgeOpener } from "./judge/judge-opener.ts";
export { readVerdicts } from "./read-verdicts.ts";
