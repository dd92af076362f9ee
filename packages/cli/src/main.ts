import { runCli } from "./program.ts";
import { ignoreClosedOutput } from "./terminal/terminal.ts";

ignoreClosedOutput();
process.exitCode = await runCli(process.argv.slice(2));
