/**
 * The whitespace of Python (`str.strip`, `str.split`, `\s` in `re`) as a character class of a regular expression. JavaScript's
 * `trim` and `\s` differ from it in U+001C–U+001F, U+0085 and U+FEFF.
 */
export const pythonWhitespace =
  "[\\t-\\r\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
