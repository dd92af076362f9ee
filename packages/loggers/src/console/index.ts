export { consoleLogger, type ConsoleOptions } from "./console-logger.ts";
export { verdictText } from "./progress-text.ts";
