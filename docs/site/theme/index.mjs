import DefaultTheme from "vitepress/theme";
import { h } from "vue";
import { BrowserDemo } from "./browser-demo.mjs";
import "./style.css";

// eslint-disable-next-line import/no-default-export -- VitePress reads it
export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { "home-hero-after": () => h(BrowserDemo) }),
};
