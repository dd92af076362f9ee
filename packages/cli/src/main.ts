import { runCli } from "./program.ts";
import { outliveReaders } from "./terminal/terminal.ts";

outliveReaders();
process.exitCode = await runCli(process.argv.slice(2));
