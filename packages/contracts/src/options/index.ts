export {
  command,
  downloadAdvice,
  errorMessage,
  describeBytes,
  fullHeapCode,
  joinRemedies,
  abbreviated,
  quoteValue,
  shortMessage,
  shellWord,
} from "./messages.ts";
export { configError, pathText, dataError, repeatedId } from "./config-error.ts";
export { describeZodIssue } from "./describe-zod-issue.ts";
export {
  isCount,
  isFilled,
  isFilledList,
  isNats,
  natsTolerance,
  isRecord,
  pythonWhitespace,
  sharedEnd,
  sharedStart,
} from "./values.ts";
export { copyJson, jsonFault, jsonRoundTrip } from "./json.ts";
export {
  checkName,
  checkPhaseName,
  nameRule,
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
export { didYouMean, nearest, unknownOption } from "./nearest.ts";
export { fixAt, parseOptions } from "./parse-options.ts";
export { isOwnColours, ownColours, printable } from "./printable.ts";
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
