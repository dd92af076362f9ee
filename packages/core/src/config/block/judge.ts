import type { Grader } from "../../contracts/grading.ts";
import type { Awaitable } from "../../contracts/json.ts";
import type { JudgePrice } from "../../grading/judge/budget.ts";
import type { VerdictCache } from "../../grading/judge/verdict-cache.ts";
import { PeriodicEvalError } from "../../errors.ts";
import { configError, pathText } from "../../internal/config-error.ts";
import type { PhaseEvalConfig } from "./config-schema.ts";
import { blockName, type ParsedBlock } from "./parse-config.ts";

/** The judge's options in a configuration, as `openJudge` of @periodic-eval/remote takes them. */
export interface ConfiguredJudge {
  readonly method: "json" | "logprob";
  readonly maxCalls?: number;
  readonly maxCost?: number;
  readonly price?: JudgePrice;
  /** The cache in the folder `judge_cache`. */
  readonly cache?: VerdictCache;
}

/** Opens a judge. `model` is the configuration's `judge_model`, or null. */
export type OpenJudge = (model: string | null, options: ConfiguredJudge) => Awaitable<Grader>;

/**
 * Opens the judge of a block.
 *
 * @param open Default: `openJudge` of @periodic-eval/remote, which this call imports.
 * @throws PeriodicEvalError with the path of a key of the block: for a cost without a price, if @periodic-eval/remote is not
 *   installed, or the error of `open`, whose options the block sets.
 */
export async function openBlockJudge(block: ParsedBlock, open?: OpenJudge): Promise<Grader> {
  const { config, pathOf } = block;
  const options = { ...judgeOptions(block), ...(await cacheOf(config)) };
  const opener = open ?? (await remoteJudge(block));
  try {
    return await opener(config.judge_model, options);
  } catch (cause) {
    if (!PeriodicEvalError.is(cause)) throw cause;
    const path = pathOf("judge_model");
    const { code, got, expected, fix } = cause;
    const where = `${blockName}${pathText(path)}, ${cause.where}`;
    throw new PeriodicEvalError({ code, where, path, got, expected, fix, cause });
  }
}

/** Core does not depend on the package, so bundlers and the compiler must not follow this import. */
const remotePackage: string = "@periodic-eval/remote";

async function remoteJudge({ pathOf }: ParsedBlock): Promise<OpenJudge> {
  try {
    const remote = (await import(/* @vite-ignore */ remotePackage)) as { readonly openJudge: OpenJudge };
    return remote.openJudge;
  } catch (cause) {
    throw configError({
      where: blockName,
      path: pathOf("alignment"),
      got: `true, and ${remotePackage}, which opens judges, cannot be imported`,
      expected: `the package, or the option \`openJudge\``,
      fix: `Run npm install ${remotePackage}, or pass { openJudge: () => grader } for a custom grader.`,
      cause,
    });
  }
}

/** @throws PeriodicEvalError `config` for a cap on the cost without a price. */
export function judgeOptions({ config, pathOf }: ParsedBlock): ConfiguredJudge {
  const { judge_method: method, judge_max_calls: maxCalls, judge_max_cost: maxCost, judge_price } = config;
  if (maxCost !== null && judge_price === null)
    throw configError({
      where: blockName,
      path: pathOf("judge_max_cost"),
      got: `${maxCost} without a price`,
      expected: "a price to compute the cost with",
      fix: "Set judge_price: { input_per_million, output_per_million }, or use judge_max_calls.",
    });
  return {
    method,
    ...(maxCalls !== null && { maxCalls }),
    ...(maxCost !== null && { maxCost }),
    ...(judge_price !== null && {
      price: {
        inputPerMillion: judge_price.input_per_million,
        outputPerMillion: judge_price.output_per_million,
      },
    }),
  };
}

/** Imports the file cache only if it is used: the package's root runs outside Node. */
async function cacheOf({ judge_cache: folder }: PhaseEvalConfig): Promise<Pick<ConfiguredJudge, "cache">> {
  if (folder === null) return {};
  const { fileVerdictCache } = await import("../../snapshots/storage/file-verdict-cache.ts");
  return { cache: fileVerdictCache(folder) };
}
