import { PeriodicEvalError } from "@periodic-eval/core";

/** The version whose internals sender.ts relies on. */
const knownVersion = "0.5.1";

/**
 * @param require The `require` of the module that imports the SDK.
 * @throws PeriodicEvalError `config` if `@wandb/sdk` is missing or has another version.
 */
export function checkSdk(require: NodeJS.Require): void {
  let got = "no package @wandb/sdk";
  let cause: unknown;
  try {
    const { version } = require("@wandb/sdk/package.json") as { readonly version: string };
    if (version === knownVersion) return;
    got = `@wandb/sdk ${version}`;
  } catch (error) {
    cause = error;
  }
  throw new PeriodicEvalError({
    code: "config",
    where: "wandbLogger SDK",
    got,
    expected: `version ${knownVersion}`,
    fix: `Install version ${knownVersion}: npm install @wandb/sdk@${knownVersion}.`,
    cause,
  });
}
