import type { Grader, Awaitable } from "@periodic-eval/contracts";
import { judgeSpec, parseLocalJudge } from "@periodic-eval/contracts/options";

/** Core does not depend on the packages, so bundlers and the compiler must not follow these imports. */
const packages: Readonly<Record<"openJudge" | "openLocalJudge", string>> = {
  openJudge: "@periodic-eval/remote",
  openLocalJudge: "@periodic-eval/models",
};

/**
 * Imports the opener of the judge that `judgeSpec(spec)` names: `openLocalJudge` of @periodic-eval/models for a judge that runs in
 * this process, `openJudge` of @periodic-eval/remote for any other. It takes the judge's options.
 *
 * @param missing Returns the error for a package that cannot be imported.
 */
export async function importJudgeOpener<O>(
  spec: string | null,
  missing: (packageName: string, cause: unknown) => Error,
): Promise<(options: O) => Awaitable<Grader>> {
  const name = judgeSpec(spec);
  const opener = parseLocalJudge(name) === null ? "openJudge" : "openLocalJudge";
  const packageName = packages[opener];
  let loaded: Readonly<Record<string, (spec: string | null, options: O) => Awaitable<Grader>>>;
  try {
    loaded = (await import(/* @vite-ignore */ packageName)) as typeof loaded;
  } catch (cause) {
    throw missing(packageName, cause);
  }
  return (options) => loaded[opener]!(name, options);
}
