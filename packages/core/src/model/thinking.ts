/** The markup around thinking: what begins it and what ends it. Marks with another first group are another block. */
export type ThinkingMarkup = readonly [begin: RegExp, end: RegExp];

/**
 * The markup that models are trained to write: `<think>` (also `<seed:think>`, `<longcat_think>`), `[THINK]` (Magistral),
 * `◁think▷` (Kimi), the tokens of Command A, Sky-T1, Apertus, MedGemma, Pangu and Gemma 4, and the channels of gpt-oss, as tokens
 * or as the text that remains when a server removes the tokens (`analysis…assistantfinal…`).
 */
export const modelMarkup: readonly ThinkingMarkup[] = [
  [/<(?!(?:begin|start|end)_)((?:\w{1,20}[:_])?think)>/gi, /<\/((?:\w{1,20}[:_])?think)>/gi],
  [/\[THINK\]/g, /\[\/THINK\]/g],
  [/◁think▷/g, /◁\/think▷/g],
  [/<\|START_THINKING\|>/g, /<\|END_THINKING\|>/g],
  [/<\|begin_of_thought\|>/g, /<\|end_of_thought\|>/g],
  [/<\|inner_prefix\|>/g, /<\|inner_suffix\|>/g],
  [/<unused94>/g, /<unused95>/g],
  [/\[unused16\]/g, /\[unused17\]/g],
  [/<\|channel>thought\b/g, /<channel\|>/g],
  [
    /<\|channel\|>(?:analysis|commentary)\b|^\s*(?:analysis|commentary)(?=\p{L})/gu,
    /<\|channel\|>final\b[^<]{0,40}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>|assistantfinal/g,
  ],
];

/** Tokens that end a reply of gpt-oss. */
const endOfReply = /(?:<\|(?:return|end)\|>\s*)+$/;

/** A part of a text. */
interface Span {
  readonly start: number;
  readonly end: number;
}

interface Mark extends Span {
  readonly isBegin: boolean;
  readonly block: string;
}

/**
 * Returns a completion without its thinking, including a block that the prompt opened (an end without a beginning before it).
 * Returns null where a block is not closed: the completion ended before its answer. A completion without such markup is returned
 * unchanged, unless `isOpened` says that the template opened a block (see `opensThinking`): then all of it is thinking.
 *
 * @param options.markup Default: `modelMarkup`.
 * @param options.quoted Parts in which markup is text, from left to right.
 */
export function stripThinking(
  text: string,
  {
    isOpened = false,
    markup = modelMarkup,
    quoted = [],
  }: {
    readonly isOpened?: boolean;
    readonly markup?: readonly ThinkingMarkup[];
    readonly quoted?: readonly Span[];
  } = {},
): string | null {
  let at = 0;
  const marks = marksIn(text, markup).filter((mark) => {
    while (at < quoted.length && quoted[at]!.end <= mark.start) at++;
    const span = quoted[at];
    return span === undefined || mark.start < span.start || span.end < mark.end;
  });
  if (marks.length === 0 && !isOpened) return text;
  let parts: string[] = [];
  let [from, isThinking] = [0, isOpened];
  let block: string | null = null;
  for (const mark of marks) {
    if (isThinking) {
      // The name of a block that the template opened is unknown.
      if (mark.isBegin || (block !== null && block !== mark.block)) continue;
    } else if (mark.isBegin) {
      parts.push(text.slice(from, mark.start));
    } else {
      parts = [];
    }
    isThinking = mark.isBegin;
    block = mark.block;
    from = mark.end;
  }
  return isThinking ? null : [...parts, text.slice(from)].join("").replace(endOfReply, "").trim();
}

/** Of marks at the same position the first markup's counts. */
function marksIn(text: string, markup: readonly ThinkingMarkup[]): readonly Mark[] {
  const marks = markup.flatMap((pair, at) =>
    pair.flatMap((pattern, side) =>
      Array.from(text.matchAll(pattern), ({ 0: match, 1: name = "", index }): Mark => {
        const block = `${at} ${name.toLowerCase()}`;
        return { start: index, end: index + match.length, isBegin: side === 0, block };
      }),
    ),
  );
  return marks
    .sort((a, b) => a.start - b.start)
    .filter((mark, index, all) => index === 0 || mark.start >= all[index - 1]!.end);
}

/**
 * Whether a rendered prompt ends in the beginning of a thinking block, so that a completion starts inside it.
 *
 * @param prompt The prompt as the chat template renders it; null if it is unknown: a server renders the chat itself.
 */
export function opensThinking(prompt: string | null): boolean {
  const text = prompt?.trimEnd() ?? "";
  const last = marksIn(text, modelMarkup).at(-1);
  return last !== undefined && last.isBegin && last.end === text.length;
}
