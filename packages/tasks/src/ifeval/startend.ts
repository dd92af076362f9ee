import type { InstructionKind } from "./instruction.ts";
import { strip } from "./text/python-strings.ts";

/** The response ends in `end_phrase`, in any case; a double quotation mark may follow. */
export const endChecker: InstructionKind = (kwargs) => {
  const phrase = strip(kwargs.text("end_phrase")).toLowerCase();
  return (response) => strip(strip(response), '"').toLowerCase().endsWith(phrase);
};

/** Double quotation marks, straight ones, round the whole response. */
export const quotation: InstructionKind = () => (response) => {
  const text = strip(response);
  return text.length > 1 && text.startsWith('"') && text.endsWith('"');
};
