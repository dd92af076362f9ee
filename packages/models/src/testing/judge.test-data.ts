import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openSafetensors, writeSafetensors } from "@periodic-eval/safetensors";
import { companions } from "../folder/file-names.ts";
import { microWorld } from "./onnx.test-data.ts";

/** Writes a judge: the embedded model with a head that writes one digit, which depends on the answer but means nothing. */
export async function writeJudge(folder: string, { contextLength = 1024 } = {}): Promise<void> {
  await mkdir(folder, { recursive: true });
  const config = JSON.parse(await readFile(join(microWorld, "config.json"), "utf8")) as Record<
    string,
    unknown
  >;
  const own = {
    ...config,
    max_position_embeddings: contextLength,
    tie_word_embeddings: false,
    torch_dtype: "float32",
  };
  await writeFile(join(folder, "config.json"), JSON.stringify(own));
  const names = ["tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"];
  for (const name of names.filter((one) => companions.test(one)))
    await writeFile(join(folder, name), await readFile(join(microWorld, name)));
  const file = await openSafetensors(join(microWorld, "model.safetensors"));
  const read = async (name: string) => (await file.read(name)) as Float32Array;
  const embedding = await read("model.embed_tokens.weight");
  const hidden = own["hidden_size" as keyof typeof own] as unknown as number;
  const rowOf = (id: number) => embedding.subarray(id * hidden, (id + 1) * hidden);
  const head = new Float32Array(embedding.length);
  const mark = Float32Array.from({ length: hidden }, (_, at) => (at % 2 === 0 ? 1 : -1));
  // The tokens 0 to 9 have the ids 15 to 24. The embedded model never saw them, so other tokens lend them their weights.
  for (let digit = 0; digit < 10; digit++) {
    // Digits come in pairs with opposite weights, so that one of each pair is likelier than any other token.
    const lent = rowOf(300 + 7 * (digit % 5)).map((value) => (digit < 5 ? 12 : -12) * value);
    head.set(lent, (15 + digit) * hidden);
    // The embedding of a digit carries a mark, which makes the next token the end.
    rowOf(15 + digit).set(mark.map((value) => 40 * value));
  }
  head.set(
    mark.map((value) => value / 2),
    1023 * hidden,
  );
  const tensors = [];
  for (const { name, shape } of file.tensors.values())
    tensors.push({
      name,
      shape,
      values: () => (name === "model.embed_tokens.weight" ? embedding : read(name)),
    });
  const shape = [head.length / hidden, hidden];
  await writeSafetensors(join(folder, "model.safetensors"), [
    ...tensors,
    { name: "lm_head.weight", shape, values: () => head },
  ]);
  await file.close();
}
