import type { Prompt, RenderedPrompt, Tokenizer } from "@periodic-eval/core";

/** Possible problems with how a model reads prompts. */
export type FindingKind =
  | "template_failure"
  | "prompt_too_long"
  | "double_bos"
  | "no_stop_token"
  | "injected_system_prompt"
  | "equal_choices"
  | "first_token_collision";

export interface Finding {
  readonly kind: FindingKind;
  /** `note`: numbers are still as the task defines them. */
  readonly severity: "warning" | "note";
  /** How many audited documents it affects; null if it concerns the tokenizer. */
  readonly documents: number | null;
  /** The problem, and the first document with it. */
  readonly message: string;
  /** The remedy. */
  readonly fix: string;
}

/** A prompt as a tokenizer reads it. Either `rendered` or `failure` is null. */
export interface AuditedPrompt {
  readonly id: string;
  readonly prompt: Prompt;
  readonly rendered: RenderedPrompt | null;
  readonly failure: string | null;
  /** The scored token ids of each choice. */
  readonly continuations: readonly (readonly number[])[];
}

/** How the model is used on the prompts. */
export interface PromptUse {
  readonly isGenerating: boolean;
  /** Null if unknown. */
  readonly contextLength: number | null;
  /** 0 if the model does not generate. */
  readonly maxNewTokens: number;
}

export function findingsOf(
  tokenizer: Tokenizer,
  prompts: readonly AuditedPrompt[],
  use: PromptUse,
): readonly Finding[] {
  return [
    templateFailures(prompts),
    tooLong(prompts, use),
    doubleBeginnings(tokenizer, prompts),
    use.isGenerating ? missingStops(tokenizer, prompts) : null,
    injectedSystem(tokenizer, prompts),
    equalChoices(prompts),
    collisions(tokenizer, prompts),
  ].filter((finding) => finding !== null);
}

/** The text of a finding. */
interface Words {
  readonly kind: FindingKind;
  readonly severity?: Finding["severity"];
  readonly describe: (first: AuditedPrompt) => string;
  readonly fix: string;
}

function found(where: readonly AuditedPrompt[], words: Words): Finding | null {
  const { kind, severity = "warning", describe, fix } = words;
  const [first] = where;
  if (first === undefined) return null;
  const message = `document "${first.id}" ${describe(first)}`;
  return { kind, severity, documents: where.length, message, fix };
}

function templateFailures(prompts: readonly AuditedPrompt[]): Finding | null {
  const failed = prompts.filter(({ failure }) => failure !== null);
  return found(failed, {
    kind: "template_failure",
    describe: ({ failure }) => `cannot be rendered: ${failure}`,
    fix: "These documents are skipped: use plain text instead of a chat, or correct the model's chat template.",
  });
}

/** Finds prompts that exceed the context together with their longest choice or their completion. */
function tooLong(
  prompts: readonly AuditedPrompt[],
  { contextLength, maxNewTokens }: PromptUse,
): Finding | null {
  if (contextLength === null) return null;
  const lengthOf = ({ rendered, continuations }: AuditedPrompt) =>
    (rendered?.ids.length ?? 0) + Math.max(0, ...continuations.map((ids) => ids.length));
  const over = prompts.filter((prompt) => lengthOf(prompt) + maxNewTokens > contextLength);
  const room = maxNewTokens === 0 ? "" : ` and ${maxNewTokens} new ones`;
  return found(over, {
    kind: "prompt_too_long",
    describe: (prompt) => `has ${lengthOf(prompt)} tokens${room}, and the context length is ${contextLength}`,
    fix: "It is cut on the left or skipped: use fewer examples, or a model with a longer context.",
  });
}

function doubleBeginnings(tokenizer: Tokenizer, prompts: readonly AuditedPrompt[]): Finding | null {
  const [begin] = tokenizer.encode("");
  if (begin === undefined) return null;
  const twice = prompts.filter(({ rendered }) => rendered?.ids[0] === begin && rendered.ids[1] === begin);
  return found(twice, {
    kind: "double_bos",
    describe: () =>
      `begins with ${quoted(tokenizer, begin)} twice: once from the text and once from the tokenizer`,
    fix: "Remove it from the text.",
  });
}

function missingStops(tokenizer: Tokenizer, prompts: readonly AuditedPrompt[]): Finding | null {
  const { stopIds } = tokenizer;
  const missing = (message: string, fix: string): Finding => {
    return { kind: "no_stop_token", severity: "warning", documents: null, message, fix };
  };
  if (stopIds.length === 0) {
    return missing(
      "no token ends a completion: only a stop string or the token limit does",
      "Set eos_token_id in the model's generation_config.json to the end-of-text token.",
    );
  }
  const end = prompts.some(({ prompt }) => "messages" in prompt) ? endOfTurn(tokenizer) : null;
  if (end === null || stopIds.includes(end)) return null;
  const stops = stopIds.map((id) => quoted(tokenizer, id)).join(", ");
  return missing(
    `the chat template ends a turn with ${quoted(tokenizer, end)}, but completions stop only at ${stops}`,
    `Add ${end} to eos_token_id in the model's generation_config.json.`,
  );
}

/** Returns the token that ends an assistant's turn; null if the template does not determine it. */
function endOfTurn(tokenizer: Tokenizer): number | null {
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: "Ho" },
  ];
  try {
    const open = tokenizer.render({ messages }, { ending: "continue" }).ids;
    const closed = tokenizer.render({ messages }, { ending: "complete" }).ids;
    const isPrefix = open.every((id, at) => closed[at] === id);
    return isPrefix ? (closed[open.length] ?? null) : null;
  } catch {
    return null;
  }
}

function injectedSystem(tokenizer: Tokenizer, prompts: readonly AuditedPrompt[]): Finding | null {
  const isInjected = ({ prompt, rendered }: AuditedPrompt) => {
    if (rendered === null || !("messages" in prompt)) return false;
    if ((prompt.system ?? "omit") !== "omit" || prompt.messages[0]?.role === "system") return false;
    try {
      tokenizer.render({ ...prompt, system: "no_system_block" });
      return false;
    } catch {
      return true;
    }
  };
  const describe = ({ prompt, rendered }: AuditedPrompt) => {
    const before = "messages" in prompt ? rendered?.text?.split(prompt.messages[0]?.content ?? "")[0] : null;
    return `gets the template's default system prompt: ${JSON.stringify(before ?? "")}`;
  };
  return found(prompts.filter(isInjected), {
    kind: "injected_system_prompt",
    describe,
    fix: "Set a system prompt to replace it, or keep it if the model was tuned with it.",
  });
}

function equalChoices(prompts: readonly AuditedPrompt[]): Finding | null {
  const equal = prompts.filter(({ continuations }) => repeats(continuations.map((ids) => ids.join(","))));
  return found(equal, {
    kind: "equal_choices",
    describe: () => "has two choices with the same tokens",
    fix: "The model cannot distinguish them, and the first counts: check the document.",
  });
}

/** Finds choices with equal first tokens. That matters for one-token labels; longer choices differ in later tokens. */
function collisions(tokenizer: Tokenizer, prompts: readonly AuditedPrompt[]): Finding | null {
  const colliding = prompts.filter(({ continuations }) => repeats(continuations.map(([id]) => id)));
  const areLabels = prompts.every(({ continuations }) => continuations.every((ids) => ids.length <= 2));
  const describe = ({ continuations }: AuditedPrompt) => {
    const firsts = continuations.map(([id]) => id!);
    const twice = firsts.find((id, at) => firsts.indexOf(id) !== at)!;
    return `has choices that begin with the same token, ${quoted(tokenizer, twice)}`;
  };
  return found(colliding, {
    kind: "first_token_collision",
    severity: areLabels ? "warning" : "note",
    describe,
    fix: areLabels
      ? "Use labels with different first tokens."
      : "No action is needed, because all tokens are scored. Do not score such choices by their first tokens.",
  });
}

const repeats = (values: readonly unknown[]): boolean => new Set(values).size < values.length;

const quoted = (tokenizer: Tokenizer, id: number): string =>
  `${JSON.stringify(tokenizer.decode([id]))} (${id})`;
