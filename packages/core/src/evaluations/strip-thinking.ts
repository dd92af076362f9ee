const opening = "<think>";
const closing = "</think>";

/**
 * What a thinking model says once it has thought: the text without its `<think>…</think>` blocks, also without one that
 * the chat template opened (a `</think>` with nothing before it that opens). Null where a block is left open: the
 * completion ended before there was an answer. A text without such marks comes back unchanged.
 */
export function stripThinking(text: string): string | null {
  const [open, close] = [text.indexOf(opening), text.indexOf(closing)];
  const isOpenedByTemplate = close >= 0 && (open < 0 || close < open);
  const rest = (isOpenedByTemplate ? text.slice(close + closing.length) : text).replaceAll(
    /<think>.*?<\/think>/gs,
    "",
  );
  if (rest.includes(opening)) return null;
  return rest === text ? text : rest.trim();
}
