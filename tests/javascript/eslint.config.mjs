import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  { rules: { eqeqeq: "error", "no-shadow": "error", "no-var": "error", "prefer-const": "error" } },
  { files: ["**/*.js"], languageOptions: { globals: { ...globals.browser, Plotly: "readonly" } } },
  { files: ["**/*.mjs"], languageOptions: { globals: globals.node } },
];
