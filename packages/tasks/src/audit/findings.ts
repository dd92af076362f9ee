import type { Prompt, RenderedPrompt, Tokenizer } from "@periodic-eval/core";

/** What may be wrong with how prompts are read. */
export type FindingKind =
  | "template_failure"
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
  readonly message: string;
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

export function findingsOf(
  tokenizer: Tokenizer,
  prompts: readonly AuditedPrompt[],
  generates: boolean,
): readonly Finding[] {
  return [
    templateFailures(prompts),
    doubleBeginnings(tokenizer, prompts),
    ...(generates ? missingStops(tokenizer, prompts) : []),
    injectedSystem(tokenizer, prompts),
    equalChoices(prompts),
    collisions(tokenizer, prompts),
  ].filter((finding) => finding !== null);
}

function templateFailures(prompts: readonly AuditedPrompt[]): Finding | null {
  const failed = prompts.filter(({ failure }) => failure !== null);
  return found("template_failure", "warning", failed, ({ failure }) => `cannot be rendered: ${failure}`);
}

function doubleBeginnings(tokenizer: Tokenizer, prompts: readonly AuditedPrompt[]): Finding | null {
  const [begin] = tokenizer.encode("");
  if (begin === undefined) return null;
  const twice = prompts.filter(({ rendered }) => rendered?.ids[0] === begin && rendered.ids[1] === begin);
  const text = quoted(tokenizer, begin);
  return found(
    "double_bos",
    "warning",
    twice,
    () => `begins with ${text} twice: the text writes it, and the tokenizer too`,
  );
}

function missingStops(tokenizer: Tokenizer, prompts: readonly AuditedPrompt[]): readonly Finding[] {
  const { stopIds } = tokenizer;
  if (stopIds.length === 0) {
    const message = "no token ends a completion: each is written to its last token or a stop string";
    return [{ kind: "no_stop_token", severity: "warning", documents: null, message }];
  }
  const end = prompts.some(({ prompt }) => "messages" in prompt) ? endOfTurn(tokenizer) : null;
  if (end === null || stopIds.includes(end)) return [];
  const stops = stopIds.map((id) => quoted(tokenizer, id)).join(", ");
  const message = `the chat template ends a turn with ${quoted(tokenizer, end)}, and completions stop only at ${stops}`;
  return [{ kind: "no_stop_token", severity: "warning", documents: null, message }];
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
  return found("injected_system_prompt", "warning", prompts.filter(isInjected), describe);
}

function equalChoices(prompts: readonly AuditedPrompt[]): Finding | null {
  const equal = prompts.filter(({ continuations }) => repeats(continuations.map((ids) => ids.join(","))));
  return found("equal_choices", "warning", equal, () => "has two choices of the same tokens");
}

/** Of choices of one token each it matters: the others are told apart by their further tokens. */
function collisions(tokenizer: Tokenizer, prompts: readonly AuditedPrompt[]): Finding | null {
  const colliding = prompts.filter(({ continuations }) => repeats(continuations.map(([id]) => id)));
  const areLabels = prompts.every(({ continuations }) => continuations.every((ids) => ids.length <= 2));
  const describe = ({ continuations }: AuditedPrompt) => {
    const firsts = continuations.map(([id]) => id!);
    const twice = firsts.find((id, at) => firsts.indexOf(id) !== at)!;
    const end = areLabels ? "" : "; harmless where all their tokens are scored";
    return `has choices that begin with the same token, ${quoted(tokenizer, twice)}${end}`;
  };
  return found("first_token_collision", areLabels ? "warning" : "note", colliding, describe);
}

function found(
  kind: FindingKind,
  severity: Finding["severity"],
  where: readonly AuditedPrompt[],
  describe: (first: AuditedPrompt) => string,
): Finding | null {
  const [first] = where;
  if (first === undefined) return null;
  return { kind, severity, documents: where.length, message: `document "${first.id}" ${describe(first)}` };
}

const repeats = (values: readonly unknown[]): boolean => new Set(values).size < values.length;

const quoted = (tokenizer: Tokenizer, id: number): string =>
  `${JSON.stringify(tokenizer.decode([id]))} (${id})`;
