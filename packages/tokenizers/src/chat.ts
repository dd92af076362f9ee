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
  modelError,
} from "@periodic-eval/contracts/options";
import { limitedTime, type TimeLimits } from "@periodic-eval/store";
import {
  renderAnswers,
  type AnswerText,
  type ChatToRender,
  type Render,
  type ChatTemplate,
  type TemplateInput,
  type TemplateRendering,
  trainingForm,
} from "./answers.ts";

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
      throw modelError(
        where,
        `the template's error "${shortMessage(errorMessage(cause))}"`,
        `a template that renders ${roles || "an empty chat"}`,
        "Pass the chat in the form that this template accepts.",
        cause,
      );
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

export type ChatRenderer = ReturnType<typeof chatRenderer>;

/**
 * Returns a function that chooses the renderer of a chat as `get_chat_template` of transformers 5.24: that of the template
 * `tool_use` for a chat with tools, otherwise that of `default`, or null if there is neither.
 *
 * @param sources Templates by name.
 * @param open Opens a template once it is used.
 */
export function namedRenderers(
  sources: ReadonlyMap<string, string>,
  open: (source: string, name: string) => ChatRenderer,
): (hasTools: boolean) => ChatRenderer | null {
  const opened = new Map<string, ChatRenderer>();
  return (hasTools) => {
    const name = hasTools && sources.has("tool_use") ? "tool_use" : "default";
    const source = sources.get(name);
    if (source === undefined) return null;
    const renderer = opened.get(name) ?? open(source, name);
    opened.set(name, renderer);
    return renderer;
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
    throw modelError(
      where,
      "a template that adds a system block to a chat without one",
      "no system block",
      'Use system: "omit", { text: "" } or your own system prompt.',
    );
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
    throw modelError(
      where,
      "a template that changes the last message",
      "a last message that can be continued",
      'Use another ending ("generation"), or a template that copies the last message.',
    );
  }
  const keepsSpaces = whole.startsWith(tag, at);
  const text = keepsSpaces ? whole.slice(0, at) : whole.slice(0, at).trimEnd();
  const cut = spoken
    ?.map(([start, end]) => [start, Math.min(end, text.length)] as const)
    .filter(([start, end]) => start < end);
  return { text, spoken: cut ?? null, isRewritten: false };
}

/**
 * Returns messages as transformers 5.24 passes them to a template: without null fields, and with the reasoning under the names
 * `reasoning_content` and `thinking`. A content in text parts stays an array for a template that reads parts; for other
 * templates, which would write it as Python prints a list or omit it, it becomes one string.
 */
function templateMessages(messages: readonly TemplateMessage[], render: Render): readonly TemplateMessage[] {
  const plain = messages.map(plainMessage);
  if (!plain.some(({ content }) => Array.isArray(content)) || readsParts(render)) return plain;
  return plain.map((message) =>
    Array.isArray(message.content) ? { ...message, content: joinParts(message.content) } : message,
  );
}

/** Returns a message without null fields, and with the reasoning under the names that templates read. */
export function plainMessage<T extends object>(message: T): T {
  const fields = Object.fromEntries(Object.entries(message).filter(([, value]) => value != null)) as Record<
    string,
    unknown
  >;
  const reasoning = fields["reasoning_content"] ?? fields["thinking"] ?? fields["reasoning"];
  const both =
    reasoning === undefined ? fields : { thinking: reasoning, ...fields, reasoning_content: reasoning };
  return both as T;
}

/**
 * Checks the names of the variables that a chat adds to its template.
 *
 * @throws PeriodicEvalError `config` for a name in `reserved`, and for one that no variable can have.
 */
export function checkTemplateKwargs(kwargs: TemplateKwargs, reserved: readonly string[]): void {
  const name = Object.keys(kwargs).find((key) => reserved.includes(key) || !/^[A-Za-z_]\w*$/.test(key));
  if (name === undefined) return;
  throw configError({
    where: "templateKwargs",
    path: [name],
    got: `the name ${JSON.stringify(name)}`,
    expected: `the name of a template variable other than ${reserved.join(", ")}`,
    fix: "Rename or remove it.",
  });
}

/** Joins the texts of a content's parts. */
const joinParts = (parts: readonly Json[]): string =>
  parts.map((part) => (part as { readonly text: string }).text).join("");

function readsParts(render: Render): boolean {
  const text = "PERIODIC_EVAL_PROBE";
  const write = (content: Json): string | null => {
    try {
      return render([{ role: "user", content }], false).text;
    } catch {
      return null;
    }
  };
  const [parts, string] = [write([{ type: "text", text }]), write(text)];
  return parts?.includes(text) === true && (parts === string || string?.includes(text) !== true);
}
