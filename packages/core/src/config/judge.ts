import type { Grader, Awaitable, VerdictCache, ValuePath } from "@periodic-eval/contracts";
import type { JudgePrice } from "../grading/judge/budget.ts";
import { fileVerdictCache } from "@periodic-eval/store";
import { importJudgeOpener } from "../grading/judge/local-judge.ts";
import { fromWritten, configError, pathText } from "@periodic-eval/contracts/options";
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
 * @param open Default: `openLocalJudge` of @periodic-eval/models for `folder:`, `hf:` and `transformers:`, `openJudge` of
 *   @periodic-eval/remote for any other name. This call imports the package.
 * @throws PeriodicEvalError with the path of a key of the block: for a cost without a price, if the package is not installed, or
 *   the error of `open`, whose options the block sets.
 */
export async function openBlockJudge(block: ParsedBlock, open?: OpenJudge): Promise<Grader> {
  const { config, pathOf } = block;
  const { judge_cache: folder } = config;
  const options = { ...judgeOptions(block), ...(folder !== null && { cache: fileVerdictCache(folder) }) };
  const opener = open ?? (await defaultOpener(block));
  const written = {
    where: (path: ValuePath) => `${blockName}${pathText(path)}`,
    pathOf: () => pathOf("judge_model"),
  };
  return fromWritten(written, () => opener(config.judge_model, options));
}

async function defaultOpener({ config, pathOf }: ParsedBlock): Promise<OpenJudge> {
  const open = await importJudgeOpener<ConfiguredJudge>(config.judge_model, (packageName, cause) =>
    configError({
      where: blockName,
      path: pathOf("alignment"),
      got: `true, and ${packageName}, which opens judges, cannot be imported`,
      expected: `the package, or the option \`openJudge\``,
      fix: `Run npm install ${packageName}, or pass { openJudge: () => grader } for a custom grader.`,
      cause,
    }),
  );
  return (_, options) => open(options);
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
