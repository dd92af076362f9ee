import type { Awaitable, Grader, ValuePath, VerdictCache } from "@periodic-eval/contracts";
import { configError, fromWritten, pathText, quoteValue } from "@periodic-eval/contracts/options";
import { fileVerdictCache } from "@periodic-eval/store";
import type { JudgePrice } from "../grading/judge/judge-calls.ts";
import type { JudgeMethodName } from "../grading/judge/judge-method.ts";
import { importJudgeOpener } from "../grading/judge/judge-opener.ts";
import { refusalJudge } from "../grading/refusal-rule.ts";
import { blockName, type JudgeOf, type JudgeRole, type ParsedBlock } from "./parse-config.ts";
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
 * Returns a function that opens the judges of a block, each once. It rejects with the path of a key of the block: if the package is
 * not installed, or with the error of `open`, whose options the block sets.
 *
 * @param open Default: `openLocalJudge` of @periodic-eval/models for `folder:`, `hf:` and `transformers:`, `openJudge` of
 *   @periodic-eval/remote for any other name. The first use imports the package.
 * @throws PeriodicEvalError `config` for a cap on the cost without a price.
 */
export function judgesOf(block: ParsedBlock, open?: OpenJudge): JudgeOf {
  const options = judgeOptions(block);
  const opened = new Map<JudgeRole, Promise<Grader>>();
  const openRole = async (role: JudgeRole): Promise<Grader> => {
    const { model, path } = namedJudge(block, role);
    const opener = open ?? (await defaultOpener(model, path));
    const written = { where: (at: ValuePath) => `${blockName}${pathText(at)}`, pathOf: () => path };
    return fromWritten(written, () => opener(model, { ...options, ...(role === "refusal" && refusalJudge) }));
  };
  return (role) => {
    if (!opened.has(role)) opened.set(role, openRole(role));
    return opened.get(role)!;
  };
}

interface NamedJudge {
  /** Null: the environment variable JUDGE_MODEL names it. */
  readonly model: string | null;
  /** The key that names it. */
  readonly path: ValuePath;
}

/** @throws PeriodicEvalError `config` for `judge_models` beside `judge_model`, or with one judge twice. */
function namedJudge({ config, pathOf }: ParsedBlock, role: JudgeRole): NamedJudge {
  const { judge_model: model, judge_models: both } = config;
  if (role === "refusal") {
    const { judge_model: refusalModel = null } = entryOf(config.refusal);
    return { model: refusalModel, path: [...pathOf("refusal"), "judge_model"] };
  }
  if (both === null) return { model, path: pathOf("judge_model") };
  if (model !== null)
    throw configError({
      where: blockName,
      path: pathOf("judge_models"),
      got: "judge_models together with judge_model",
      expected: "one of the two",
      fix: "Remove judge_model: the first of judge_models is the judge.",
    });
  if (both[0] === both[1])
    throw configError({
      where: blockName,
      path: [...pathOf("judge_models"), 1],
      value: both[1],
      expected: "another judge than the first",
      fix: "Name another model, or write judge_model for one judge.",
    });
  const at = role === "second" ? 1 : 0;
  return { model: both[at], path: [...pathOf("judge_models"), at] };
}

async function defaultOpener(model: string | null, path: ValuePath): Promise<OpenJudge> {
  const open = await importJudgeOpener<ConfiguredJudge>(model, (packageName, cause) =>
    configError({
      where: blockName,
      path,
      got: `${quoteValue(model)}, and ${packageName}, which opens judges, cannot be imported`,
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
function judgeOptions({ config, pathOf }: ParsedBlock): ConfiguredJudge {
  const { judge_method: method, judge_max_calls: maxCalls, judge_max_cost: maxCost, judge_price } = config;
  const { judge_cache: folder } = config;
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
    ...(folder !== null && { cache: fileVerdictCache(folder) }),
  };
}
