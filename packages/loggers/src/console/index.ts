export { consoleLogger, type ConsoleOptions } from "./console-logger.ts";
