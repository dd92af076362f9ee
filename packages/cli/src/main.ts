import { constants } from "node:os";

// Node opens its debugger at SIGUSR1. Once a listener has been removed, the signal ends the process, as it ends other programs,
// until a command listens itself.
const none = (): void => undefined;
if (process.platform !== "win32") process.on("SIGUSR1", none).off("SIGUSR1", none);

// The system ignores a signal of process 1 (a container's) that nobody listens for.
if (process.pid === 1)
  for (const signal of ["SIGHUP", "SIGINT", "SIGUSR1", "SIGTERM"] as const)
    process.on(signal, () => {
      if (process.listenerCount(signal) === 1) process.exit(128 + constants.signals[signal]);
    });

// Imported only now: a signal may arrive while modules load.
const [{ runCli }, { ignoreClosedOutput }] = await Promise.all([
  import("./program.ts"),
  import("./terminal/terminal.ts"),
]);

ignoreClosedOutput();
process.exitCode = await runCli(process.argv.slice(2));
