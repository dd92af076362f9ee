import type { Json } from "../contracts/json.ts";
import type {
  ChatEnding,
  Message,
  SystemPrompt,
  TemplateKwargs,
  TemplateMessage,
} from "../contracts/model.ts";
import { PeriodicEvalError } from "../errors.ts";
import { configError } from "../internal/config-error.ts";
import { errorMessage } from "../internal/error-message.ts";
import { shortMessage } from "../internal/quote-value.ts";

export interface TemplateRendering {
  readonly text: string;
  /** Half-open ranges of UTF-16 units inside `{% generation %}`; null if the template has no such tag. */
  readonly generated: readonly (readonly [start: number, end: number])[] | null;
}

export interface TemplateInput {
  readonly messages: readonly TemplateMessage[];
  readonly addGenerationPrompt: boolean;
  /** Default: null, as in `apply_chat_template`. */
  readonly tools?: readonly Json[] | null;
  readonly kwargs?: TemplateKwargs;
}

/** Renders a chat. Throws the template's own errors unchanged. */
export type ChatTemplate = (input: TemplateInput) => TemplateRendering;

export interface RenderedChat {
  readonly text: string;
  /** Half-open ranges of UTF-16 units that the assistant wrote; null if the template does not reveal them. */
  readonly spoken: readonly (readonly [start: number, end: number])[] | null;
}

const tag = "PERIODIC_EVAL_OPEN_END ";
const probe = "PERIODIC_EVAL_PROBE";

/** Returns a function that renders chats with one template; `where` names the template in errors. */
export function chatRenderer(template: ChatTemplate, where: string) {
  const renderWith = (
    messages: readonly Message[],
    generationPrompt: boolean,
    kwargs: TemplateKwargs,
  ): TemplateRendering => {
    try {
      return template({ messages, addGenerationPrompt: generationPrompt, kwargs });
    } catch (cause) {
      if (PeriodicEvalError.is(cause, "config")) throw cause;
      throw new PeriodicEvalError({
        code: "model",
        where,
        got: `the template's error "${shortMessage(errorMessage(cause))}"`,
        expected: `a template that renders ${messages.map(({ role }) => role).join(", ") || "an empty chat"}`,
        fix: "Pass the chat in the form that this template accepts.",
        cause,
      });
    }
  };

  return (
    messages: readonly Message[],
    system: SystemPrompt,
    ending: ChatEnding,
    kwargs: TemplateKwargs = {},
  ): RenderedChat => {
    const render: Render = (some, generationPrompt) => renderWith(some, generationPrompt, kwargs);
    const chat = withSystem(messages, system, render, where);
    if (ending === "continue") return continued(chat, render, where);
    const { text, generated } = render(chat, ending === "generation");
    return { text, spoken: generated ?? spokenByPrefixes(chat, text, render) };
  };
}

type Render = (messages: readonly Message[], generationPrompt: boolean) => TemplateRendering;

function withSystem(
  messages: readonly Message[],
  system: SystemPrompt,
  render: Render,
  where: string,
): readonly Message[] {
  if (system === "omit") return messages;
  if (messages[0]?.role === "system") {
    throw configError({
      where: "prompt",
      path: ["system"],
      got: "a system prompt for a chat that begins with a system message",
      expected: "one of the two",
      fix: 'Remove the message from the chat, or set system: "omit".',
    });
  }
  if (system !== "no_system_block") return [{ role: "system", content: system.text }, ...messages];
  if (injectsSystemBlock(messages, render)) {
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: "a template that adds a system block to a chat without one",
      expected: "no system block",
      fix: 'Use system: "omit", { text: "" } or your own system prompt.',
    });
  }
  return messages;
}

/**
 * Whether the template adds a system block by itself. Compares the chat without a system message to the chat with a probe:
 * without an added block, the second is the first plus a whole block, of which the probe is only a part. A template that
 * rejects or ignores system messages adds no block.
 */
function injectsSystemBlock(messages: readonly Message[], render: Render): boolean {
  const without = render(messages, false).text;
  let probed: string;
  try {
    probed = render([{ role: "system", content: probe }, ...messages], false).text;
  } catch {
    return false;
  }
  if (!probed.includes(probe)) return false;
  const prefix = commonPrefix(without, probed);
  const suffix = commonPrefix(reversed(without.slice(prefix)), reversed(probed.slice(prefix)));
  if (prefix + suffix < without.length) return true;
  return probed.length - without.length === probe.length;
}

/** Follows `continue_final_message` of transformers: a tag after the last message marks where to cut the text. */
function continued(messages: readonly Message[], render: Render, where: string): RenderedChat {
  const last = messages.at(-1);
  const open: readonly Message[] =
    last === undefined ? [] : [...messages.slice(0, -1), { ...last, content: last.content + tag }];
  const { text: whole, generated } = render(open, false);
  const at = whole.lastIndexOf(tag.trimEnd());
  if (last === undefined || at < 0 || !whole.includes(last.content.trim())) {
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: "a template that changes the last message",
      expected: "a last message that can be continued",
      fix: 'Use another ending ("generation"), or a template that copies the last message.',
    });
  }
  const keepsSpaces = whole.startsWith(tag, at);
  const text = keepsSpaces ? whole.slice(0, at) : whole.slice(0, at).trimEnd();
  const spans = generated ?? spokenByPrefixes(open, whole, render);
  const cut = spans
    ?.map(([start, end]) => [start, Math.min(end, text.length)] as const)
    .filter(([start, end]) => start < end);
  return { text, spoken: cut ?? null };
}

/**
 * Finds the assistant's text for templates without `{% generation %}`: the text that its message adds to the chat with a
 * generation prompt. Null if the text before a message depends on later messages.
 */
function spokenByPrefixes(
  messages: readonly Message[],
  text: string,
  render: Render,
): RenderedChat["spoken"] {
  const spans: [number, number][] = [];
  for (const [i, { role }] of messages.entries()) {
    if (role !== "assistant") continue;
    let before: string;
    let after: string;
    try {
      before = render(messages.slice(0, i), true).text;
      after = render(messages.slice(0, i + 1), false).text;
    } catch {
      return null;
    }
    if (!text.startsWith(before) || !text.startsWith(after)) return null;
    spans.push([before.length, after.length]);
  }
  return spans;
}

function commonPrefix(a: string, b: string): number {
  let n = 0;
  while (n < a.length && n < b.length && a[n] === b[n]) n += 1;
  return n;
}

function reversed(text: string): string {
  return [...text].toReversed().join("");
}
