export type { Terminal } from "./terminal.ts";
export { runCli } from "./program.ts";
