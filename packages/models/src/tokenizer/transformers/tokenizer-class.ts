import { modelError } from "../../folder/model-error.ts";
import { classOfType, otherClasses, typesWithWrongClass } from "./class-names.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The class that takes `tokenizer.json` as it is. */
export const plainClass = "TokenizersBackend";

/** Classes with the pipeline of another, and those that became TokenizersBackend. */
const aliases: Readonly<Record<string, string>> = {
  BartTokenizer: "RobertaTokenizer",
  BloomTokenizer: plainClass,
  MobileBertTokenizer: "BertTokenizer",
  ParakeetTokenizer: plainClass,
  PreTrainedTokenizer: plainClass,
  PythonBackend: plainClass,
  SqueezeBertTokenizer: "BertTokenizer",
};

/**
 * Returns the class that `AutoTokenizer.from_pretrained` of transformers 5.24 uses for a local folder, without
 * mistral-common, without remote code and without the names of models on the hub.
 *
 * @param config `tokenizer_config.json`.
 * @param model `config.json`; empty if there is none.
 * @param isByteLevel Whether the text of `tokenizer.json` contains `"ByteLevel"`, with the quotes.
 * @param isSupported Whether this library can build the pipeline of a class.
 * @throws PeriodicEvalError `model` for a class whose pipeline this library does not know, and for remote code.
 */
export function tokenizerClass(
  config: Fields,
  model: Fields,
  isByteLevel: boolean,
  isSupported: (name: string) => boolean,
  where: string,
): string {
  const name = aliases[chosen(config, model, isByteLevel)] ?? chosen(config, model, isByteLevel);
  if (name === plainClass || isSupported(name)) return name;
  if (!otherClasses.has(name)) {
    if (!hasRemoteCode(config)) return plainClass;
    throw classError(where, "a tokenizer that is a program of its own (auto_map)");
  }
  throw classError(where, `the class ${name}, whose pipeline transformers builds itself`);
}

export const classError = (where: string, got: string) =>
  modelError({
    where: `${where}, tokenizer_class`,
    path: ["tokenizer_class"],
    got,
    expected: "a class whose pipeline this library knows",
    fix: 'Pass { pipeline: "tokenizer_json" } to loadTokenizer: then tokenizer.json is taken as it is, which may differ from transformers.',
  });

function hasRemoteCode({ auto_map: map }: Fields): boolean {
  if (map === undefined || map === null) return false;
  return Array.isArray(map) || (typeof map === "object" && "AutoTokenizer" in map);
}

function chosen(config: Fields, model: Fields, isByteLevel: boolean): string {
  const named = nameOf(config["tokenizer_class"]);
  const declared = named ?? nameOf(model["tokenizer_class"]);
  const type = nameOf(model["model_type"]);
  const registered = type === null ? undefined : classOfType.get(type);
  const isWrong = [type, nameOf(model["model_name"])].some(
    (name) => name !== null && typesWithWrongClass.has(name),
  );
  if (!hasRemoteCode(config) && declared === null && model["tokenizer_class"] === "")
    return isWrong ? (registered ?? plainClass) : plainClass;
  if (!hasRemoteCode(config) && declared !== null) {
    if (declared === "LlamaTokenizer" && !isWrong && isByteLevel) return plainClass;
    if (registered !== undefined && registered !== declared) {
      if (registered === plainClass) return plainClass;
      return isWrong ? registered : declared;
    }
  }
  if (hasRemoteCode(config) && !isWrong) return named ?? registered ?? "remote code";
  // An empty name is that of no class, not an absent one.
  if (config["tokenizer_class"] === "") return plainClass;
  return declared ?? registered ?? plainClass;
}

/** Returns the name of a class without the suffix `Fast`, or null. */
function nameOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value.replace(/Fast$/, "") : null;
}
