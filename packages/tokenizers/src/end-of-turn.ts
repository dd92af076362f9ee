import type { chatRenderer } from "./chat.ts";
import type { Codec } from "./codec.ts";

/** Returns the special token that a template writes after an assistant's turn; null if there is none. */
export function endOfTurnId(codec: Codec, renderChat: ReturnType<typeof chatRenderer>): number | null {
  const spoken = "PROBE";
  const chat = [
    { role: "user", content: "Hello" },
    { role: "assistant", content: spoken },
  ];
  try {
    const { text } = renderChat(chat, "omit", "complete");
    const after = text.slice(text.lastIndexOf(spoken) + spoken.length);
    const first = codec.encode(after.trimStart(), false)[0];
    return first !== undefined && codec.specialIds.has(first) ? first : null;
  } catch {
    // Without support for such a chat, the end of a turn cannot be found this way.
    return null;
  }
}
