// Which measurements may be paired. Sessions, baselines, `compare` and the overlay ask only this module.
import { type Json, type Snapshot, canonicalJson } from "@periodic-eval/contracts";
import { isRecord } from "@periodic-eval/contracts/options";
import { isOfCheckpoint } from "./undisturbed.ts";

/** Everything besides the weights that a value depends on. */
export type Setup = Pick<Snapshot, "evaluation" | "evaluation_version" | "on"> & {
  readonly provenance: Pick<
    Snapshot["provenance"],
    "evaluation" | "tokenizer" | "items_hash" | "items" | "model"
  >;
  readonly receipt?: Snapshot["receipt"];
};

type Options = Readonly<Record<string, Json>>;

/**
 * Describes how the setups of two measurements differ; empty if they may be paired. Comparing others would blame training for the
 * difference. Measurements may have other items only if one chose another subset: they are paired over the items that both have.
 *
 * @param except A difference that is intended.
 */
export function differencesOf(there: Setup, here: Setup, except: "on" | null = null): string[] {
  const [was, is] = [there.provenance, here.provenance];
  const [model, modelHere] = [recordOf(was.model), recordOf(is.model)];
  // A checkpoint of another program has the name of its folder.
  const isNamed = ![there, here].some(({ receipt = [] }) => isOfCheckpoint({ receipt }));
  const pairs: Readonly<Record<string, readonly [Json, Json]>> = {
    "the evaluation": [there.evaluation, here.evaluation],
    "the version": [there.evaluation_version, here.evaluation_version],
    ...(except !== "on" && { "the model (on)": [there.on, here.on] }),
    "the tokenizer": [was.tokenizer, is.tokenizer],
    ...(isNamed && { "the model": [model["name"] ?? null, modelHere["name"] ?? null] }),
    "the context length": [model["context_length"] ?? null, modelHere["context_length"] ?? null],
    "the backend": [model["engine"] ?? null, modelHere["engine"] ?? null],
    "the number format": [model["dtype"] ?? null, modelHere["dtype"] ?? null],
  };
  const arithmetic = differentKeys(arithmeticOf(model), arithmeticOf(modelHere));
  const isOtherSubset = differentKeys(subsetOf(was.evaluation), subsetOf(is.evaluation)).length > 0;
  return [
    ...Object.entries(pairs)
      .filter(([, [value, valueHere]]) => value !== valueHere)
      .map(([what, [value, valueHere]]) => `${what} ${textOf(value)} (here ${textOf(valueHere)})`),
    ...(arithmetic.length === 0 ? [] : [`other arithmetic of the backend (${arithmetic.join(", ")})`]),
    ...differentOptions(optionsOf(was.evaluation), optionsOf(is.evaluation)),
    ...(was.items_hash === is.items_hash || isOtherSubset ? [] : [otherItems(was.items, is.items)]),
  ];
}

/** Describes that a measurement has other items than one here. */
export const otherItems = (count: number | null, countHere: number | null): string =>
  count === countHere
    ? "other items (their content or answer keys)"
    : `other items (${count ?? "unknown"}, here ${countHere ?? "unknown"})`;

const textOf = (value: Json): string =>
  typeof value === "string" ? value : value === null ? "unknown" : JSON.stringify(value);

const recordOf = (json: unknown): Options => (isRecord(json) ? (json as Options) : {});

/** The versions and settings of an engine, without its view of the batch, which its load decides, and without addresses. */
function arithmeticOf(model: Options): Options {
  const {
    root: _,
    max_model_len: __,
    scores_depend_on_batch: ___,
    batch_tokens: ____,
    ...details
  } = recordOf(model["details"]);
  return details;
}

/** Leaves out the keys that only choose or show items. */
function optionsOf(evaluation: Json): Options {
  if (!isRecord(evaluation)) return evaluation === null ? {} : { provenance: evaluation };
  const { subsample: _, example_prompt: __, ...options } = evaluation as Options;
  return options;
}

const subsetOf = (evaluation: Json): Options => ({ subsample: recordOf(evaluation)["subsample"] ?? null });

/** Returns each option of two that differs, with its path and both values. */
function differentOptions(there: Options, here: Options, path = ""): string[] {
  return differentKeys(there, here).flatMap((key) => {
    const [was, is] = [there, here].map((options) =>
      Object.hasOwn(options, key) ? options[key] : undefined,
    );
    if (isRecord(was) && isRecord(is)) return differentOptions(was, is, `${path}${key}.`);
    const [wasText, isText] = [was, is].map((value) => {
      const text = JSON.stringify(value) ?? "none";
      return text.length > 60 ? `${text.slice(0, 60)}…` : text;
    });
    return [`the option ${path}${key} ${wasText} (here ${isText})`];
  });
}

const differentKeys = (a: Options, b: Options): string[] =>
  [...new Set([...Object.keys(a), ...Object.keys(b)])].filter(
    (name) => jsonText(a, name) !== jsonText(b, name),
  );

/** Returns null without the key, which every object would have if it is named `toString`. */
const jsonText = (options: Options, name: string) =>
  Object.hasOwn(options, name) ? canonicalJson(options[name]!) : null;
