export { command } from "./command.ts";
export { configError, pathText } from "./config-error.ts";
export { dataError, judgeError, modelError } from "./data-error.ts";
export { describeZodIssue } from "./describe-zod-issue.ts";
export { downloadAdvice } from "./download-advice.ts";
export { errorMessage } from "./error-message.ts";
export { isCount } from "./is-count.ts";
export { isFilled, isFilledList } from "./is-filled.ts";
export { isNats, natsTolerance } from "./is-nats.ts";
export { isRecord } from "./is-record.ts";
export { copyJson, jsonFault, jsonRoundTrip } from "./json.ts";
export { describeBytes, fullHeapCode, joinRemedies } from "./memory-errors.ts";
export { checkName, checkPhaseName, nameRule } from "./names.ts";
export { didYouMean, nearest } from "./nearest.ts";
export {
  arrayOrPath,
  filledString,
  functionSchema,
  integerFromZero,
  nameSchema,
  numberFromZero,
  numberToOne,
  objectWith,
  onSchema,
  phaseSchema,
  positiveInteger,
  seedSchema,
  signalSchema,
  stepsSchema,
} from "./option-schemas.ts";
export { fixAt, parseOptions } from "./parse-options.ts";
export { isOwnColours, ownColours, printable } from "./printable.ts";
export { pythonWhitespace } from "./python-whitespace.ts";
export { abbreviated, quoteValue, shortMessage } from "./quote-value.ts";
export { repeatedId } from "./repeated-id.ts";
export { sharedEnd, sharedStart } from "./shared-start.ts";
export { shellWord } from "./shell-word.ts";
export { unknownOption } from "./unknown-option.ts";
export {
  aboutOption,
  atOption,
  atWritten,
  changedError,
  checked,
  codeOption,
  entryAt,
  fromWritten,
  isNotCached,
  optionAt,
  optionsAt,
  snakeCase,
  yamlOption,
  type Written,
} from "./written.ts";
