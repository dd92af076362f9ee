import type { InstructionKind } from "./instruction.ts";

/** No comma; those of other scripts are none. */
export const noComma: InstructionKind = () => (response) => !response.includes(",");
