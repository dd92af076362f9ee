/**
 * White space as Python has it (`str.strip`, `str.split`, `\s` of `re`), as a class of a regular expression; JavaScript's
 * `trim` and `\s` differ in U+001C–U+001F, U+0085 and U+FEFF.
 */
export const pythonWhitespace =
  "[\\t-\\r\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
