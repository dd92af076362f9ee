import type { Awaitable, Grader, ValuePath, VerdictCache } from "@periodic-eval/contracts";
import { configError, fromWritten, pathText } from "@periodic-eval/contracts/options";
import { fileVerdictCache } from "@periodic-eval/store";
import type { JudgePrice } from "../grading/judge/judge-calls.ts";
import type { JudgeMethodName } from "../grading/judge/judge-method.ts";
import { importJudgeOpener } from "../grading/judge/judge-opener.ts";
import { refusalJudge } from "../grading/refusal-rule.ts";
import { blockName, type ParsedBlock } from "./parse-config.ts";
import { entryOf } from "./schema-parts.ts";

/** The judge's options in a configuration, as `openJudge` of @periodic-eval/remote takes them. */
export interface ConfiguredJudge {
  readonly method: JudgeMethodName;
  readonly maxCalls?: number;
  readonly maxCost?: number;
  readonly price?: JudgePrice;
  /** The cache in the folder `judge_cache`. */
  readonly cache?: VerdictCache;
  /** Names of the scores. Omitted for `aligned` and `coherent`; `refusal` for a judge of refusals. */
  readonly scores?: readonly string[];
  /** The prompts of these scores, as in `JudgeOptions`. */
  readonly prompts?: Readonly<Record<string, string>>;
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
export async function openBlockJudge(
  block: ParsedBlock,
  open?: OpenJudge,
  which: "first" | "second" | "refusal" = "first",
): Promise<Grader> {
  const { config, pathOf } = block;
  const { judge_cache: folder, judge_models: both } = config;
  if (both !== null && config.judge_model !== null)
    throw configError({
      where: blockName,
      path: pathOf("judge_models"),
      got: "judge_models together with judge_model",
      expected: "one of the two",
      fix: "Remove judge_model: the first of judge_models is the judge.",
    });
  if (both !== null && both[0] === both[1])
    throw configError({
      where: blockName,
      path: [...pathOf("judge_models"), 1],
      value: both[1],
      expected: "another judge than the first",
      fix: "Name another model, or write judge_model for one judge.",
    });
  const at = which === "second" ? 1 : 0;
  const ofRefusal = which === "refusal" ? (entryOf(config.refusal).judge_model ?? null) : null;
  const model = ofRefusal ?? (both === null ? config.judge_model : both[at]);
  const options = {
    ...judgeOptions(block),
    ...(folder !== null && { cache: fileVerdictCache(folder) }),
    ...(ofRefusal !== null && refusalJudge),
  };
  const opener = open ?? (await defaultOpener(block, model));
  const written = {
    where: (path: ValuePath) => `${blockName}${pathText(path)}`,
    pathOf: () => {
      if (ofRefusal !== null) return [...pathOf("refusal"), "judge_model"];
      return both === null ? pathOf("judge_model") : [...pathOf("judge_models"), at];
    },
  };
  return fromWritten(written, () => opener(model, options));
}

async function defaultOpener({ pathOf }: ParsedBlock, model: string | null): Promise<OpenJudge> {
  const open = await importJudgeOpener<ConfiguredJudge>(model, (packageName, cause) =>
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

/**
 * Returns the options of a block's judges.
 *
 * @throws PeriodicEvalError `config` for a cap on the cost without a price.
 */
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
