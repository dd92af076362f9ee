import { type TemplateMessage, type Json, type TemplateKwargs, hashText } from "@periodic-eval/contracts";
import { sharedEnd, sharedStart } from "@periodic-eval/contracts/options";

export type Render = (messages: readonly TemplateMessage[], generationPrompt: boolean) => TemplateRendering;

/** A half-open range of UTF-16 units. */
export type Span = readonly [start: number, end: number];

export interface AnswerText {
  readonly text: string;
  /** The assistant's answers in `text`; null if the template does not reveal them. */
  readonly spoken: readonly Span[] | null;
  /** Whether earlier answers are written otherwise than in the template's text of the chat. */
  readonly isRewritten: boolean;
}

export interface ChatToRender {
  readonly messages: readonly TemplateMessage[];
  readonly generationPrompt: boolean;
  readonly render: Render;
  /** How training writes and scores answers; null for a prompt of a measurement. */
  readonly training: TrainingForm | null;
  /** Returns the start of the special token of `text` that contains the position, or the position. */
  readonly tokenStart: (text: string, position: number) => number;
}

/**
 * Renders a chat and finds the assistant's answers in it. For a template without `{% generation %}`, an answer begins after the
 * generation prompt, without a thinking block that the prompt opens, and ends after its end of turn. Both come from renderings of
 * parts of the chat.
 *
 * With `training`, the text is that of TRL 1.16.0's training templates: where a template writes an earlier answer without the
 * thinking block that it writes for the last answer (Qwen3, Qwen3.5), each answer gets the block.
 */
export function renderAnswers(chat: ChatToRender): AnswerText {
  const { training, render } = chat;
  if (training === null) return answersIn(chat);
  if (!training.keepsThinking) return withScoredCue(answersIn(chat), training, render);
  const messages = chat.messages.map((message) => hideTag(message));
  const { text, spoken, isRewritten } = withScoredCue(answersIn({ ...chat, messages }), training, render);
  const whole = text.replaceAll(hiddenTag, closingTag);
  return { text: whole, spoken, isRewritten: isRewritten || whole !== text };
}

function answersIn(chat: ChatToRender): AnswerText {
  const { messages, generationPrompt, render, training } = chat;
  const { text, generated } = render(messages, generationPrompt);
  const unchanged = (spoken: AnswerText["spoken"]) => ({ text, spoken, isRewritten: false });
  if (generated !== null) return unchanged(generated);
  try {
    const first = messages.findIndex(isAnswer);
    const hides = training !== null && hidesThinking(render);
    const isAsked = () => first < 0 || isAfterQuestion(chat, first);
    const spoken = hides && !isAsked() ? null : spokenByPrefixes(chat, text);
    if (spoken !== null) return unchanged(spoken);
    const pieced = isAsked() ? pieceTogether(chat, hides) : pieceAfterQuestion(chat, text, hides);
    if (pieced.text === text || hides) return { ...pieced, isRewritten: pieced.text !== text };
  } catch {
    // A template may refuse parts of a chat that it accepts as a whole.
  }
  return unchanged(null);
}

const closingTag = "</think>";
/** Noncharacters in the place of the tag, by which a template would find the thinking. */
const hiddenTag = "\uFDD8".repeat(closingTag.length);

const hideTag = (message: TemplateMessage): TemplateMessage =>
  isAnswer(message) && typeof message.content === "string"
    ? { ...message, content: message.content.replaceAll(closingTag, hiddenTag) }
    : message;

/** Adds the end of the generation prompt to the answers, as far as TRL scores it; null if an answer comes after other text. */
function withScoredCue(answers: AnswerText, { scoredCue }: TrainingForm, render: Render): AnswerText {
  if (scoredCue === 0 || answers.spoken === null) return answers;
  const { text } = answers;
  const cue = withoutThinking(cueOf(render, (_, position) => position)).slice(-scoredCue);
  const isAfterCue = ([start]: Span) => text.slice(0, start).endsWith(cue);
  if (!answers.spoken.every(isAfterCue)) return { ...answers, spoken: null };
  return { ...answers, spoken: answers.spoken.map(([start, end]) => [start - cue.length, end] as const) };
}

/** Returns the generation prompt. */
function cueOf(render: Render, tokenStart: ChatToRender["tokenStart"]): string {
  const [unprompted, prompted] = [false, true].map((prompt) => render([ask], prompt).text) as [
    string,
    string,
  ];
  return prompted.slice(tokenStart(unprompted, sharedStart(unprompted, prompted)));
}

const ask: TemplateMessage = { role: "user", content: "Hi" };

const isAnswer = ({ role }: TemplateMessage): boolean => role === "assistant";

/** Removes the thinking block that a generation prompt opens or leaves empty: it is part of the answer. */
const withoutThinking = (prompt: string): string => prompt.replace(/<think>\s*(<\/think>\s*)?$/, "");

/** Finds the answers of a template that writes a chat's beginning as it writes the chat. Null for other templates. */
function spokenByPrefixes(chat: ChatToRender, text: string): readonly Span[] | null {
  const { messages, generationPrompt, render } = chat;
  const spans: Span[] = [];
  for (const [i, message] of messages.entries()) {
    if (!isAnswer(message)) continue;
    const isWhole = i === messages.length - 1 && !generationPrompt;
    let start: number | null;
    let after: string;
    try {
      start = spans.length === 0 ? firstStart(chat, text, i) : leadEnd(chat, text, i);
      after = isWhole ? text : render(messages.slice(0, i + 1), false).text;
    } catch {
      return null;
    }
    if (start === null || !text.startsWith(after)) return null;
    spans.push([start, after.length]);
  }
  return spans;
}

/** Returns where the answer at `i` begins if the text begins as a prompt for it; null otherwise. */
function leadEnd({ messages, render }: ChatToRender, text: string, i: number): number | null {
  const lead = withoutThinking(render(messages.slice(0, i), true).text);
  return text.startsWith(lead) ? lead.length : null;
}

/**
 * Returns where the first answer begins in the template's text, also if the template refuses a prompt for it.
 *
 * @throws Error if the start is ambiguous.
 */
function firstStart(chat: ChatToRender, text: string, first: number): number {
  const { messages, generationPrompt, render, tokenStart } = chat;
  try {
    const start = leadEnd(chat, text, first);
    if (start !== null) return start;
  } catch {
    // The template refuses a chat without a question.
  }
  const changed = render(messages.with(first, lengthened(messages[first]!)), generationPrompt).text;
  return afterCue(text.slice(0, sharedStart(text, changed)), cueOf(render, tokenStart));
}

/** A noncharacter of Unicode, which no message ends with. */
const mark = "\uFDD7";

/** Whether the template begins the last answer with something that it leaves out of earlier ones. */
function hidesThinking(render: Render): boolean {
  const asked = [ask, { role: "assistant", content: mark }];
  try {
    const [last, earlier] = [asked, [...asked, ask]].map(
      (messages) => render(messages, false).text.split(mark)[0]!,
    );
    return last !== earlier && last!.startsWith(earlier!);
  } catch {
    return false;
  }
}

/** Whether the template writes the first answer as after a question: it may hide the thinking of others, or refuse them. */
function isAfterQuestion({ messages, render }: ChatToRender, first: number): boolean {
  const before = messages.slice(0, first);
  const answerAfter = (some: readonly TemplateMessage[]): string => {
    const lead = withoutThinking(render(some, true).text);
    return render([...some, messages[first]!], false).text.slice(lead.length);
  };
  try {
    return answerAfter(before) === answerAfter([...before, ask]);
  } catch {
    return before.some(({ role }) => role === "user");
  }
}

/**
 * Finds the answers by changing one at a time: the text after the change is the same, whatever the template does to earlier
 * answers. With `asLast`, takes each answer from a rendering in which it is the last message.
 *
 * @throws Error if the template's renderings do not fit together.
 */
function pieceTogether({ messages, generationPrompt, render, tokenStart }: ChatToRender, asLast: boolean) {
  const count = messages.length;
  /** Returns the text of the first `length` messages after the words of the answer at `i`. */
  const textAfter = (length: number, prompt: boolean, i: number | null): string => {
    const some = messages.slice(0, length);
    const { text } = render(some, prompt);
    if (i === null) return text;
    const changed = render(some.with(i, lengthened(messages[i]!)), prompt).text;
    if (changed === text) throw new Error("the template does not write an answer");
    return text.slice(text.length - sharedEnd(text, changed));
  };
  const cue = cueOf(render, tokenStart);
  let text = "";
  let previous: number | null = null;
  const turns: { readonly start: number; readonly end: number; readonly closing: string | null }[] = [];
  for (const [i, message] of messages.entries()) {
    if (!isAnswer(message)) continue;
    const source = asLast ? ([i + 1, false] as const) : ([count, generationPrompt] as const);
    const from = textAfter(...source, previous);
    const piece = from.slice(0, from.length - textAfter(...source, i).length);
    const lead = withoutThinking(textAfter(i, true, previous));
    const start = text.length + (piece.startsWith(lead) ? lead.length : afterCue(piece, cue));
    text += piece;
    const isWhole = i === count - 1 && !generationPrompt;
    const closing = isWhole ? null : textAfter(i + 1, true, i);
    if (closing?.endsWith(cue) === false) throw new Error("the template writes another generation prompt");
    turns.push({
      start,
      end: text.length,
      closing: closing && closing.slice(0, closing.length - cue.length),
    });
    previous = i;
  }
  text += textAfter(count, generationPrompt, previous);
  const spoken = turns.map(({ start, end, closing }): Span => {
    if (closing === null) return [start, text.length];
    if (!text.startsWith(closing, end)) throw new Error("the template ends answers in several ways");
    return [start, end + closing.length];
  });
  return { text, spoken };
}

/** Pieces a chat together that has no question before its first answer, by a question put there. */
function pieceAfterQuestion(chat: ChatToRender, text: string, asLast: boolean) {
  const first = chat.messages.findIndex(isAnswer);
  const asked = pieceTogether({ ...chat, messages: chat.messages.toSpliced(first, 0, ask) }, asLast);
  const at = firstStart(chat, text, first);
  const moved = at - asked.spoken[0]![0];
  return {
    text: text.slice(0, at) + asked.text.slice(at - moved),
    spoken: asked.spoken.map(([start, end]): Span => [start + moved, end + moved]),
  };
}

/** Returns where the answer begins in the text between the words of the answer before and its end. */
function afterCue(piece: string, prompt: string): number {
  const cue = withoutThinking(prompt);
  const at = piece.indexOf(cue);
  if (cue === "" || at < 0 || piece.includes(cue, at + 1))
    throw new Error("the template writes an answer otherwise than its prompt");
  return at + cue.length;
}

/** Returns the answer with a mark at the end of its words and of the arguments of its calls. */
function lengthened(message: TemplateMessage): TemplateMessage {
  const { content, tool_calls: calls } = message as TemplateMessage & { readonly tool_calls?: unknown };
  return {
    ...message,
    ...((typeof content === "string" || !Array.isArray(calls) || calls.length === 0) && {
      content: `${typeof content === "string" ? content : ""}${mark}`,
    }),
    ...(Array.isArray(calls) && { tool_calls: calls.map(lengthenedCall) }),
  };
}

function lengthenedCall(call: Readonly<Record<string, unknown>>): object {
  const { function: inner, arguments: input } = call;
  if (typeof inner === "object" && inner !== null)
    return { ...call, function: lengthenedCall(inner as typeof call) };
  const isText = typeof input === "string";
  return { ...call, arguments: isText ? input + mark : { ...(input as object | undefined), [mark]: mark } };
}

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

/** The effects of TRL's training template that the text of the published template does not reveal. */
interface TrainingForm {
  /** Characters at the end of the generation prompt that count as part of the answer. */
  readonly scoredCue: number;
  /** Whether the thinking in an answer stays, which the template removes. */
  readonly keepsThinking: boolean;
}

const usual: TrainingForm = { scoredCue: 0, keepsThinking: false };
const wholeCue: TrainingForm = { ...usual, scoredCue: Infinity };

/**
 * The published templates of which TRL 1.16.0's training templates score tokens of the generation prompt, or have another
 * effect, by their hash: TRL recognises templates by their text. Null if no form has that effect.
 */
const forms: Readonly<Record<string, TrainingForm | null>> = {
  // Qwen2.5
  "pe128:d07338b7f0799d0a4fb6c82508e68fe4": { ...usual, scoredCue: 1 },
  // DeepSeek-V3
  "pe128:2cb8b29fb5c14bc4a39127e8c52bcf54": wholeCue,
  // DeepSeek-R1-Distill
  "pe128:da97360f729869e1c27672dee09dfa66": { ...wholeCue, keepsThinking: true },
  // gpt-oss
  "pe128:39767ca200baf4b3fb3c0ff806088f9b": wholeCue,
  // Muse Glimmer
  "pe128:2a890d9ca88b5d6289c9395e7b6f2186": wholeCue,
  // GLM-4-MoE: TRL adds an end of turn, which the template does not write.
  "pe128:781c2651b0a851871e5da50dedaf7884": null,
  // DiffusionGemma: TRL scores no replies of tools inside an answer.
  "pe128:1e710e20404501842bc11302c83279b6": null,
};

/**
 * Returns the form of a template; null if it cannot be derived.
 *
 * @param source The template's text; null if it is unknown.
 */
export function trainingForm(source: string | null): TrainingForm | null {
  const form = source === null ? undefined : forms[hashText(source)];
  return form === undefined ? usual : form;
}
