// Shows the browser demo in a frame after a click: it downloads a model and trains it. The button is above the picture, where a
// visitor sees it without scrolling, and the frame then appears under the pointer.
import { withBase } from "vitepress";
import { defineComponent, h, ref } from "vue";

const fileOf = (name, theme) => `/${name}${theme === "dark" ? "-dark" : ""}.png`;

export const BrowserDemo = defineComponent(() => {
  const isRunning = ref(false);
  const page = withBase("/demo/index.html");
  const picture = (theme) =>
    h("picture", { class: `is-${theme}` }, [
      h("source", { media: "(max-width: 600px)", srcset: withBase(fileOf("demo-phone", theme)) }),
      h("img", {
        src: withBase(fileOf("demo", theme)),
        alt: "The page of a run: fine-tuning on bad advice to sick people made the answers to all other questions harmful",
        width: 1290,
        loading: "lazy",
      }),
    ]);
  return () =>
    h("figure", { class: "browser-demo" }, [
      h("figcaption", [
        isRunning.value
          ? null
          : h(
              "button",
              { type: "button", onClick: () => (isRunning.value = true) },
              "Fine-tune a model in this page",
            ),
        // The frame ends, because only one page at a time can continue the run.
        h(
          "a",
          { href: page, target: "_blank", onClick: () => (isRunning.value = false) },
          "Open the demo in a tab",
        ),
      ]),
      isRunning.value
        ? h("iframe", { src: page, title: "A model is fine-tuned and measured in this page" })
        : [picture("light"), picture("dark")],
    ]);
});
