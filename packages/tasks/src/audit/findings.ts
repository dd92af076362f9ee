import type { Prompt, RenderedPrompt, Tokenizer } from "@periodic-eval/core";

/** What may be wrong with how prompts are read. */
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
  /** `note`: a number that it changes is still what the task defines. */
  readonly severity: "warning" | "note";
  /** How many of the documents looked at; null where it is the tokenizer's. */
  readonly documents: number | null;
  /** What was found, and where first. */
  readonly message: string;
  /** What to do. */
  readonly fix: string;
}

/** A prompt as a tokenizer reads it; rendered and failure: one of them is null. */
export interface AuditedPrompt {
  readonly id: string;
  readonly prompt: Prompt;
  readonly rendered: RenderedPrompt | null;
  readonly failure: string | null;
  /** Ids of each choice that are scored after the prompt. */
  readonly continuations: readonly (readonly number[])[];
}

/** How prompts are asked. */
export interface Asking {
  readonly isWriting: boolean;
  /** Null: nobody can tell. */
  readonly contextLength: number | null;
  /** 0 where the model does not write. */
  readonly maxNewTokens: number;
}

export function findingsOf(
  tokenizer: Tokenizer,
  prompts: readonly AuditedPrompt[],
  asking: Asking,
): readonly Finding[] {
  return [
    templateFailures(prompts),
    tooLong(prompts, asking),
    doubleBeginnings(tokenizer, prompts),
    asking.isWriting ? missingStops(tokenizer, prompts) : null,
    injectedSystem(tokenizer, prompts),
    equalChoices(prompts),
    collisions(tokenizer, prompts),
  ].filter((finding) => finding !== null);
}

/** What a finding says of the first document that has it, and what is to be done. */
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
    fix: "These are not asked: ask without a chat, or correct the model's chat template.",
  });
}

/** Of a model that reads a window; the longest choice counts. */
function tooLong(prompts: readonly AuditedPrompt[], { contextLength, maxNewTokens }: Asking): Finding | null {
  if (contextLength === null) return null;
  const lengthOf = ({ rendered, continuations }: AuditedPrompt) =>
    (rendered?.ids.length ?? 0) + Math.max(0, ...continuations.map((ids) => ids.length));
  const over = prompts.filter((prompt) => lengthOf(prompt) + maxNewTokens > contextLength);
  const room = maxNewTokens === 0 ? "" : ` and ${maxNewTokens} to be written`;
  return found(over, {
    kind: "prompt_too_long",
    describe: (prompt) => `has ${lengthOf(prompt)} tokens${room}, and the context holds ${contextLength}`,
    fix: "It is cut on the left, or not asked: show fewer examples, or take a model of longer context.",
  });
}

function doubleBeginnings(tokenizer: Tokenizer, prompts: readonly AuditedPrompt[]): Finding | null {
  const [begin] = tokenizer.encode("");
  if (begin === undefined) return null;
  const twice = prompts.filter(({ rendered }) => rendered?.ids[0] === begin && rendered.ids[1] === begin);
  return found(twice, {
    kind: "double_bos",
    describe: () =>
      `begins with ${quoted(tokenizer, begin)} twice: the text writes it, and the tokenizer too`,
    fix: "Leave it out of the text.",
  });
}

function missingStops(tokenizer: Tokenizer, prompts: readonly AuditedPrompt[]): Finding | null {
  const { stopIds } = tokenizer;
  const missing = (message: string, fix: string): Finding => {
    return { kind: "no_stop_token", severity: "warning", documents: null, message, fix };
  };
  if (stopIds.length === 0) {
    return missing(
      "no token ends a completion: each is written to its last token or a stop string",
      "Name the end-of-text token as eos_token_id in the model's generation_config.json.",
    );
  }
  const end = prompts.some(({ prompt }) => "messages" in prompt) ? endOfTurn(tokenizer) : null;
  if (end === null || stopIds.includes(end)) return null;
  const stops = stopIds.map((id) => quoted(tokenizer, id)).join(", ");
  return missing(
    `the chat template ends a turn with ${quoted(tokenizer, end)}, and completions stop only at ${stops}`,
    `Add ${end} to eos_token_id in the model's generation_config.json.`,
  );
}

/** The token behind an assistant's message; null where the template cannot tell. */
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
    return `gets a system prompt of the template, though none was given: ${JSON.stringify(before ?? "")}`;
  };
  return found(prompts.filter(isInjected), {
    kind: "injected_system_prompt",
    describe,
    fix: "Give a system prompt, which stands in its place; or keep it, where the model was tuned with it.",
  });
}

function equalChoices(prompts: readonly AuditedPrompt[]): Finding | null {
  const equal = prompts.filter(({ continuations }) => repeats(continuations.map((ids) => ids.join(","))));
  return found(equal, {
    kind: "equal_choices",
    describe: () => "has two choices of the same tokens",
    fix: "The model cannot tell them apart, and the first counts: look at the document.",
  });
}

/** Of choices of one token each it matters: the others are told apart by their further tokens. */
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
      ? "Take labels whose first tokens differ."
      : "Nothing: all their tokens are scored. Do not score such choices by their first tokens.",
  });
}

const repeats = (values: readonly unknown[]): boolean => new Set(values).size < values.length;

const quoted = (tokenizer: Tokenizer, id: number): string =>
  `${JSON.stringify(tokenizer.decode([id]))} (${id})`;
