import { PeriodicEvalError } from "@periodic-eval/contracts";

/** Takes the place of `@huggingface/hub` in browsers, whose files are those of a page. */
function unavailable(): never {
  throw new PeriodicEvalError({
    code: "config",
    where: "the Hugging Face Hub",
    got: "a browser",
    expected: "Node, or files that the page has fetched",
    fix: "Fetch the files with fetchFiles of @periodic-eval/store/browser, and pass their path.",
  });
}

export {
  unavailable as datasetInfo,
  unavailable as downloadFile,
  unavailable as listFiles,
  unavailable as modelInfo,
};
