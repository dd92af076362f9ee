/** Returns the name of a judge: `spec`, or without one the environment variable JUDGE_MODEL. Null if neither is set. */
export function judgeSpec(spec: string | null | undefined): string | null {
  // Browsers have no `process`.
  const { process } = globalThis as {
    process?: { readonly env?: Readonly<Record<string, string | undefined>> };
  };
  return spec?.trim() || process?.env?.["JUDGE_MODEL"]?.trim() || null;
}

/** The ways to name a judge model, for errors. */
export const judgeNames =
  "openai:MODEL, anthropic:MODEL or a model name; without a key folder:PATH, hf:owner/name, transformers:owner/name, or rule:micro-world in the command line";

/** A judge that runs in this process, as a name gives it. */
export interface LocalJudgeName {
  /**
   * - `transformers`: an ONNX model that `@huggingface/transformers` runs; a folder, or `owner/name` on the hub.
   * - `folder`: a Hugging Face folder that this library's engine runs.
   * - `hf`: the same from the hub.
   */
  readonly kind: "transformers" | "folder" | "hf";
  readonly source: string;
  /** `dtype` and `device` of a `transformers` judge, as they are written. */
  readonly query: Readonly<Record<string, string>>;
}

/**
 * Parses the name of a judge that runs in this process: `transformers:SOURCE`, `transformers:SOURCE?dtype=q4&device=webgpu`,
 * `folder:PATH` or `hf:owner/name`. Returns null for any other name.
 */
export function parseLocalJudge(spec: string | null | undefined): LocalJudgeName | null {
  const [, kind, rest] = /^(transformers|folder|hf):(.*)$/s.exec(spec?.trim() ?? "") ?? [];
  if (kind === undefined || rest === undefined) return null;
  const at = kind === "transformers" ? rest.lastIndexOf("?") : -1;
  const [source, query] = at < 0 ? [rest, ""] : [rest.slice(0, at), rest.slice(at + 1)];
  return {
    kind: kind as LocalJudgeName["kind"],
    source: source.trim(),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}
