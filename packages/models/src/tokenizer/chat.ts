import {
  PeriodicEvalError,
  type ChatEnding,
  type Message,
  type SystemPrompt,
  type TemplateKwargs,
} from "@periodic-eval/core";
import { errorMessage } from "@periodic-eval/core/internal";
import type { ChatTemplate, TemplateRendering } from "./template.ts";

/** A rendered chat and which of its characters (UTF-16 units) an assistant spoke; null where that cannot be told. */
export interface RenderedChat {
  readonly text: string;
  readonly spoken: readonly (readonly [start: number, end: number])[] | null;
}

const tag = "PERIODIC_EVAL_OPEN_END ";
const probe = "PERIODIC_EVAL_PROBE";

/** Renders chats through one template; `where` names the template in errors. */
export function chatRenderer(template: ChatTemplate, where: string) {
  const renderWith = (
    messages: readonly Message[],
    generationPrompt: boolean,
    kwargs: TemplateKwargs,
  ): TemplateRendering => {
    try {
      return template(messages, generationPrompt, kwargs);
    } catch (cause) {
      if (PeriodicEvalError.is(cause, "config")) throw cause;
      throw new PeriodicEvalError({
        code: "model",
        where,
        got: `the template's error "${errorMessage(cause)}"`,
        expected: `a template that renders ${messages.map(({ role }) => role).join(", ") || "an empty chat"}`,
        fix: "Give the chat in the form that this template takes.",
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
    throw new PeriodicEvalError({
      code: "config",
      where: "render",
      got: "a chat that begins with a system message, and a system prompt beside it",
      expected: "one of the two",
      fix: 'Take the message out of the chat, or ask for system: "omit".',
    });
  }
  if (system !== "no_system_block") return [{ role: "system", content: system.text }, ...messages];
  if (injectsSystemBlock(messages, render)) {
    throw new PeriodicEvalError({
      code: "model",
      where,
      got: "a template that writes a system block into a chat that has none",
      expected: "no system block",
      fix: 'Use system: "omit", { text: "" } or a text of your own.',
    });
  }
  return messages;
}

/**
 * Compares the chat without a system message to the one with a probe: where the template adds no block, the second is the
 * first with a whole block put in, of which the probe is only a part. A template that refuses or ignores system messages
 * has no block to inject.
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

/** As transformers' `continue_final_message`: a tag after the last message marks where the text is cut. */
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
      got: "a template that does not write the last message as it is",
      expected: "a last message that can be continued",
      fix: 'Use another ending ("generation"), or a template that keeps the last message.',
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
 * For templates without `{% generation %}`: what an assistant spoke is what its message adds to the chat that invites it.
 * Null where the text before a message depends on what follows it.
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
