/** The parts of a session, for trainers and tools built around one. */
export { divertMathRandom, mathRandomGuard } from "../random/guards.ts";
export { advance, crossings, isAnyCrossed, isTimed, plannedSteps } from "../schedule/crossings.ts";
export { gradeStored, type GradeStoredOptions } from "./records/resume.ts";
export { checkRequests, type RequestCheck } from "./window/check-run.ts";
export { describeStepTime } from "./budget/describe-plan.ts";
export { closeLoggers, logWarning } from "./loop/log-events.ts";
export { checkSessionOptions } from "./loop/options.ts";
export { adapterOffId } from "./records/baselines.ts";
export { isUngraded } from "./records/resume.ts";
export { lacksOptionalQuestions, prepareEvaluation } from "./window/prepare.ts";
export { countTokens, deadlineAt } from "./window/measurement-progress.ts";
export { measuredBy } from "../conditions/find-metric.ts";
export {
  conditionForms,
  limitOf,
  readCondition,
  type Condition,
  type ValueTest,
  type VerdictTest,
} from "../conditions/condition.ts";
