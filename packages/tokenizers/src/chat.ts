import {
  type Json,
  type ChatEnding,
  type SystemPrompt,
  type TemplateKwargs,
  type TemplateMessage,
  PeriodicEvalError,
} from "@periodic-eval/contracts";
import {
  configError,
  errorMessage,
  shortMessage,
  sharedEnd,
  sharedStart,
} from "@periodic-eval/contracts/options";
import { limitedTime, type TimeLimits } from "@periodic-eval/store";
import { renderAnswers, type AnswerText, type ChatToRender, type Render } from "./answers.ts";
import type { ChatTemplate, TemplateInput, TemplateRendering } from "./chat-template.ts";
import { templateMessages } from "./template-messages.ts";
import { trainingForm } from "./training-forms.ts";

/** How a chat is rendered besides its ending. */
export interface ChatOptions extends Partial<Pick<ChatToRender, "tokenStart">> {
  /** Whether the chat is a training row. Default: false. */
  readonly training?: boolean;
  readonly kwargs?: TemplateKwargs;
  /** JSON schemas of the tools that the chat offers. Default: null. */
  readonly tools?: readonly Json[] | null;
}

const tag = "PERIODIC_EVAL_OPEN_END ";
const probe = "PERIODIC_EVAL_PROBE";

/**
 * Returns a function that renders chats with one template.
 *
 * @param where Names the template in errors.
 * @param source The template's text; null if it has none.
 * @param limits Deadlines of renderings, until one has ended in time.
 */
export function chatRenderer(
  template: ChatTemplate,
  where: string,
  source: string | null = null,
  limits?: TimeLimits,
) {
  const form = trainingForm(source);
  const limited = limitedTime("the template", limits);
  let hasEnded = false;
  const renderWith = (input: TemplateInput): TemplateRendering => {
    try {
      const rendering = hasEnded ? template(input) : limited(() => template(input));
      hasEnded = true;
      return rendering;
    } catch (cause) {
      if (PeriodicEvalError.is(cause, "config")) throw cause;
      const roles = input.messages.map(({ role }) => role).join(", ");
      throw new PeriodicEvalError({
        code: "model",
        where,
        got: `the template's error "${shortMessage(errorMessage(cause))}"`,
        expected: `a template that renders ${roles || "an empty chat"}`,
        fix: "Pass the chat in the form that this template accepts.",
        cause,
      });
    }
  };

  return (
    messages: readonly TemplateMessage[],
    system: SystemPrompt,
    ending: ChatEnding,
    { kwargs = {}, tools = null, training = false, tokenStart = (_, at) => at }: ChatOptions = {},
  ): AnswerText => {
    const render: Render = (some, addGenerationPrompt) =>
      renderWith({ messages: some, addGenerationPrompt, tools, kwargs });
    const chat = withSystem(templateMessages(messages, render), system, render, where);
    const answersOf = (some: readonly TemplateMessage[], generationPrompt: boolean): AnswerText => {
      const how = { render, training: training ? form : null, tokenStart };
      const answers = renderAnswers({ messages: some, generationPrompt, ...how });
      return training && form === null ? { ...answers, spoken: null } : answers;
    };
    if (ending === "continue") return continued(chat, (some) => answersOf(some, false), where);
    return answersOf(chat, ending === "generation");
  };
}

function withSystem(
  messages: readonly TemplateMessage[],
  system: SystemPrompt,
  render: Render,
  where: string,
): readonly TemplateMessage[] {
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

function injectsSystemBlock(messages: readonly TemplateMessage[], render: Render): boolean {
  const without = render(messages, false).text;
  let probed: string;
  try {
    probed = render([systemProbe, ...messages], false).text;
  } catch {
    return false;
  }
  return hasAddedBlock(without, probed);
}

/** The system message of the second text that `hasAddedBlock` compares. */
export const systemProbe = { role: "system", content: probe };

/**
 * Whether a template adds a system block by itself. Compares the chat without a system message to the chat with `systemProbe`:
 * without an added block, the second is the first plus a whole block, of which the probe is only a part. A template that
 * rejects or ignores system messages adds no block.
 */
export function hasAddedBlock(without: string, probed: string): boolean {
  if (!probed.includes(probe)) return false;
  const prefix = sharedStart(without, probed);
  const suffix = sharedEnd(without.slice(prefix), probed.slice(prefix));
  if (prefix + suffix < without.length) return true;
  return probed.length - without.length === probe.length;
}

/** Follows `continue_final_message` of transformers: a tag after the last message marks where to cut the text. */
function continued(
  messages: readonly TemplateMessage[],
  answersOf: (messages: readonly TemplateMessage[]) => AnswerText,
  where: string,
): AnswerText {
  const last = messages.at(-1);
  const content = typeof last?.content === "string" ? last.content : "";
  const open = last === undefined ? [] : [...messages.slice(0, -1), { ...last, content: content + tag }];
  const { text: whole, spoken } = answersOf(open);
  const at = whole.lastIndexOf(tag.trimEnd());
  if (last === undefined || at < 0 || !whole.includes(content.trim())) {
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
  const cut = spoken
    ?.map(([start, end]) => [start, Math.min(end, text.length)] as const)
    .filter(([start, end]) => start < end);
  return { text, spoken: cut ?? null, isRewritten: false };
}
