/** Ends a command with an exit code. The command line prints the cause; without one, the command has printed why. */
export class CommandFailure extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, cause: unknown = null) {
    super(`exit code ${exitCode}`, { cause });
    this.name = "CommandFailure";
    this.exitCode = exitCode;
  }
}
