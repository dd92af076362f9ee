export type { Terminal } from "./terminal/terminal.ts";
export { runCli } from "./program.ts";
