import { PeriodicEvalError } from "@periodic-eval/core";

/** The one whose insides sender.ts was written over. */
const knownVersion = "0.5.1";

/**
 * @param require of the module that imports the SDK.
 * @throws PeriodicEvalError `config` where `@wandb/sdk` is missing or of another version.
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
