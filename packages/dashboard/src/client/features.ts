import { type RunData, alignedX, coherentY, scatterText } from "../page-data/run-data.ts";
import { startAnswers } from "./answers/start-answers.ts";
import { startCrossHair } from "./cross-hair.ts";
import { create, createSvg, readDataBlock } from "./dom.ts";
import { startDownloads } from "./downloads.ts";

/** Adds a slider to each scatter plot that shows the answers of any measurement. */
function startScatters(): void {
  const data = readDataBlock<RunData>("run-data");
  if (data === null) return;
  for (const figure of document.querySelectorAll<HTMLElement>('[data-kind="chosen"]')) {
    const scatter = data.scatters.find(({ callback }) => callback === figure.dataset["scatter"]);
    if (scatter && scatter.measurements.length > 1) addSlider(figure, scatter, data);
  }
}

function addSlider(figure: HTMLElement, scatter: RunData["scatters"][number], { parts }: RunData): void {
  const last = scatter.measurements.length - 1;
  const slider = create("input", { type: "range", min: "0", max: String(last), step: "1" });
  slider.value = String(last);
  const show = (at: number): void => {
    const shown = scatter.measurements[at];
    if (!shown) return;
    const text = scatterText(scatter, shown, parts);
    figure.dataset["shown"] = String(at);
    // Five phase colours, as in the page's style.
    figure.className = `panel accent-${(shown.part % 5) + 1}`;
    figure.querySelector(".scatter-text")!.textContent = text;
    slider.setAttribute("aria-valuetext", text);
    figure.querySelector("svg")!.setAttribute("aria-label", `Alignment and coherence scores. ${text}`);
    const circles = shown.answers.map(([aligned, coherent]) =>
      createSvg("circle", { cx: alignedX(aligned), cy: coherentY(coherent), r: 4.5 }),
    );
    figure.querySelector("svg g")!.replaceChildren(...circles);
  };
  slider.addEventListener("input", () => show(Number(slider.value)));
  figure.append(create("label", { class: "scatter-step" }, "Step", slider));
  show(last);
}

/** The features of a page. Each finds its own elements and data, and does nothing on a page that has none. */
const features: readonly (() => void)[] = [startCrossHair, startDownloads, startScatters, startAnswers];

/** Starts all features on the content of the page. */
export function startFeatures(): void {
  for (const start of features) start();
}
