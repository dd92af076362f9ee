export { graceText, measurementCount, repeatedReason, snapshotText, undisturbedText } from "./sentences.ts";
export {
  displayLogger,
  keepRunningWithoutOutput,
  plainConsoleLogger,
  type Display,
} from "./console-logger.ts";
export { paceText, type Colours, verdictText } from "./sentences.ts";
