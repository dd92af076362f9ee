/** Pictographs that stand in running text as signs: they are emoji only where U+FE0F asks for it. */
const signs = "©®™";

/** One pictograph as it is drawn: with its variant, its skin, and the tags of a flag; U+FE0E asks for a text sign. */
const pictograph = String.raw`(?:[${signs}]\uFE0F|(?![${signs}])[\p{Emoji_Presentation}\p{Extended_Pictographic}](?!\uFE0E))(?:\uFE0F|\p{Emoji_Modifier})?[\u{E0020}-\u{E007F}]*`;
const keycap = String.raw`[0-9#*]\uFE0F?\u20E3`;
const flag = String.raw`\p{Regional_Indicator}{2}`;

const emoji = new RegExp(`${keycap}|${flag}|${pictograph}(?:\\u200D${pictograph})*`, "gu");

/**
 * The emoji of a text, sequences joined by U+200D, flags and keycaps each as one. By Unicode's properties Emoji_Presentation
 * and Extended_Pictographic: digits, `#` and `*` are none by themselves, and ©, ® and ™ only with U+FE0F behind them.
 */
export function findEmoji(text: string): readonly string[] {
  return text.match(emoji) ?? [];
}
