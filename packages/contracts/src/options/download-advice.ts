import { command } from "./command.ts";

/**
 * Returns how to get a dataset of the built-in tasks, as a sentence for errors.
 *
 * @param folder The data folder that the command writes to.
 */
export const downloadAdvice = (
  { name, source }: { readonly name: string; readonly source: string },
  folder = "FOLDER",
): string => `${command(`data get ${name} --out ${folder}`)} writes ${folder}/${name}; or name ${source}.`;
