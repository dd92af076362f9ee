/** Files in browsers: paths of runs, models and data sets lead to files in memory, or in IndexedDB after `openBrowserFiles`. */
export {
  deleteBrowserFiles,
  openBrowserFiles,
  type BrowserFiles,
  type BrowserFilesOptions,
} from "./open-files.ts";
export { fetchFiles } from "./fetch-files.ts";
export { mkdir, readdir, readFile, rm, stat, writeFile } from "#platform";
