// Shows the browser demo in a frame after a click: it downloads a model and trains it. The button is above the picture, where a
// visitor sees it without scrolling, and the frame then appears under the pointer.
import { withBase } from "vitepress";
import { defineComponent, h, ref } from "vue";

export const BrowserDemo = defineComponent(() => {
  const isRunning = ref(false);
  const page = withBase("/demo/index.html");
  const picture = () =>
    h("img", {
      src: withBase("/demo.png"),
      alt: "Alignment, capability and leakage of the embedded model over two phases of fine-tuning",
      width: 1280,
      loading: "lazy",
    });
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
        : picture(),
    ]);
});
