/** Returns why a text is no answer; null if it may be one. A rule of the text alone, in any language and without a judge. */
export function textFault(text: string): "empty" | "repeated" | "incoherent" | null {
  if (!/[\p{L}\p{N}]/u.test(text)) return "empty";
  return null;
}
