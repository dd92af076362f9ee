/**
 * Helpers that the packages of this repository share. Unstable: they change without notice, so do not import them elsewhere.
 */
export { closingText, undisturbedText } from "../console/closing-text.ts";
export {
  displayLogger,
  keepRunningWithoutOutput,
  plainConsoleLogger,
  type Display,
} from "../console/console-logger.ts";
export { verdictText, type Colours } from "../console/sentences.ts";
export { availableMemory } from "./available-memory.ts";
export { configError, pathText, type ConfigErrorDetails } from "./config-error.ts";
export { describeZodIssue, type ZodIssueDescription } from "./describe-zod-issue.ts";
export { errorMessage } from "./error-message.ts";
export { bareHost, isLoopback, isOriginOf, isOwnHost } from "./host-names.ts";
export { isCount } from "./is-count.ts";
export { isRecord } from "./is-record.ts";
export { checkName, checkPhaseName } from "./names.ts";
export { nearest } from "./nearest.ts";
export { parseOptions } from "./parse-options.ts";
export { pythonWhitespace } from "./python-whitespace.ts";
export { quoteValue } from "./quote-value.ts";
export { walkJson } from "./walk-json.ts";
export { samplingSchema } from "../evaluations/prompting/prompt-options.ts";
