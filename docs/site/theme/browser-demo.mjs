// Shows the browser demo in a frame after a click: it downloads a model and trains it.
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
      isRunning.value
        ? h("iframe", { src: page, title: "A model is fine-tuned and measured in this page" })
        : picture(),
      h("figcaption", [
        isRunning.value
          ? null
          : h(
              "button",
              { type: "button", onClick: () => (isRunning.value = true) },
              "Fine-tune a model in this page",
            ),
        h("a", { href: page, target: "_blank" }, "Open the demo in a tab"),
      ]),
    ]);
});
