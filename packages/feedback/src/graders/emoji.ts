/** Signs that ordinary text contains. They count as emoji only before U+FE0F. */
const signs = "©®™";

/** One pictograph with its variation selector, skin tone and flag tags. A pictograph before U+FE0E is text, not emoji. */
const pictograph = String.raw`(?:[${signs}]\uFE0F|(?![${signs}])[\p{Emoji_Presentation}\p{Extended_Pictographic}](?!\uFE0E))(?:\uFE0F|\p{Emoji_Modifier})?[\u{E0020}-\u{E007F}]*`;
const keycap = String.raw`[0-9#*]\uFE0F?\u20E3`;
const flag = String.raw`\p{Regional_Indicator}{2}`;

const emoji = new RegExp(`${keycap}|${flag}|${pictograph}(?:\\u200D${pictograph})*`, "gu");

/**
 * Returns the emoji of a string. A sequence joined by U+200D, a flag and a keycap each count as one. Uses Unicode's properties
 * Emoji_Presentation and Extended_Pictographic; digits, `#` and `*` alone do not count, and ©, ® and ™ only before U+FE0F.
 */
export function findEmoji(text: string): readonly string[] {
  return text.match(emoji) ?? [];
}
