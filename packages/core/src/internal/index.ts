/**
 * Helpers that the packages of this repository share. Unstable: they change without notice, so do not import them elsewhere.
 */
export { closingText, graceText, placeText, undisturbedText } from "../console/closing-text.ts";
export {
  displayLogger,
  keepRunningWithoutOutput,
  plainConsoleLogger,
  type Display,
} from "../console/console-logger.ts";
export { isOwnColours, ownColours, printable } from "./printable.ts";
export { paceText, verdictText, type Colours } from "../console/sentences.ts";
export { requireMetrics } from "../evaluations/kit/require-metrics.ts";
export { checkPrompt } from "../model/check-prompt.ts";
export { grouped } from "../statistics/grouping.ts";
export { graderSchema } from "../grading/grader-schema.ts";
export { readVerdicts } from "../grading/read-verdicts.ts";
export { placed } from "../hub/rows.ts";
export { isOnlyEdges, isWithinGrace } from "../snapshots/undisturbed.ts";
export { availableMemory } from "./available-memory.ts";
export { command } from "./command.ts";
export { configError, pathText, type ConfigErrorDetails } from "./config-error.ts";
export { dataError } from "./data-error.ts";
export { describeZodIssue, type ZodIssueDescription } from "./describe-zod-issue.ts";
export { downloadAdvice } from "./download-advice.ts";
export { endingSignals, exitCodeOf, onEndingSignal, type EndingSignal } from "./ending-signals.ts";
export { errorMessage } from "./error-message.ts";
export { fixForList, fixForObject } from "./fix-for-form.ts";
export type { Reporter } from "../session/records/reporter.ts";
export { resolvesWithin, startTimeout } from "./timeout.ts";
export { workingSeconds } from "./working-clock.ts";
export { bareHost, isLoopback, isOriginOf, isOwnHost } from "./host-names.ts";
export { maskSecret } from "./mask-secret.ts";
export { fetchBounded, joinBytes, maxReplyBytes, ReplyTooLargeError } from "./fetch-bounded.ts";
export { headerReadings } from "./header-readings.ts";
export { isCount } from "./is-count.ts";
export { isFilled, isFilledList } from "./is-filled.ts";
export { isNats, natsTolerance } from "./is-nats.ts";
export { isRecord } from "./is-record.ts";
export { isRunning } from "./is-running.ts";
export { limitedTime, type TimeLimits } from "./limited-time.ts";
export { describeBytes, fullHeapCode, joinRemedies } from "./memory-errors.ts";
export { atOption, codeOption, downloadOption, isNotCached, yamlOption } from "./source-option.ts";
export { changedError } from "./changed-error.ts";
export { atWrittenKey, snakeCase } from "./written-key.ts";
export { fixForMissing, isMissingFile } from "./missing-source.ts";
export { checkName, checkPhaseName } from "./names.ts";
export { didYouMean, nearest } from "./nearest.ts";
export { parseOptions } from "./parse-options.ts";
export { pythonWhitespace } from "./python-whitespace.ts";
export { abbreviated, quoteValue, shortMessage } from "./quote-value.ts";
export { shardedCheckpoint, type ShardedCheckpoint } from "./sharded-checkpoint.ts";
export { shellWord } from "./shell-word.ts";
export { findMarked, isMarkedNumber, markNumbers, withoutMark } from "./marked-numbers.ts";
export { parsePythonJson } from "./python-json.ts";
export { sharedStart } from "./shared-start.ts";
export { strictJson } from "./strict-json.ts";
export { unknownOption } from "./unknown-option.ts";
export { repeatedKey } from "./walk-json.ts";
export { samplingSchema } from "../evaluations/prompting/prompt-options.ts";
export {
  importJudgeOpener,
  judgeNames,
  judgeSpec,
  parseLocalJudge,
  type LocalJudgeName,
} from "../grading/judge/local-judge.ts";
export { fitPairs, fitPrompts, logLikelihoodOf, type FitLimits } from "../model/fit-scored.ts";
export { drawToken, type Drawn } from "../model/sampling.ts";
export {
  acceptToken,
  beginWriting,
  charactersPerToken,
  completionOf,
  fitRequests,
  isWritten,
  type Writing,
} from "../model/writing.ts";
export { wrapModel, type Ask } from "../model/wrap-model.ts";
export { nextTurn, yieldToEvents } from "../model/yield-to-events.ts";
export { byteLetters, tokenByteRanges } from "../tokenizer/align.ts";
export { tokenizerOf, type TransformersTokenizer } from "../tokenizer/auto-tokenizer.ts";
export type { ChatTemplate, TemplateInput, TemplateRendering } from "../tokenizer/chat-template.ts";
export { chatRenderer } from "../tokenizer/chat.ts";
export type { Codec } from "../tokenizer/codec.ts";
export { endOfTurnId } from "../tokenizer/end-of-turn.ts";
export { plainMessage } from "../tokenizer/template-messages.ts";
export { promptRenderer } from "../tokenizer/render-prompt.ts";
export { defaultDate, strftimeOn, templateDate } from "../tokenizer/template-date.ts";
export { checkIds } from "../model/check-ids.ts";
export { positiveInteger } from "./option-schemas.ts";
export { functionSchema } from "./option-schemas.ts";
export { fastStream } from "../random/streams.ts";
