import DefaultTheme from "vitepress/theme";
import BrowserDemo from "./browser-demo.mjs";
import "./style.css";

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app }) => app.component("BrowserDemo", BrowserDemo),
};
