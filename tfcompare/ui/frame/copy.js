// A button that copies a text at once; where the browser refuses, the text is shown, selected.

const LABEL = "Copy for a pull request";

const FIELD =
  "width: 100%; height: 12rem; font-family: var(--st-code-font); color: var(--st-text-color); " +
  "background: var(--st-background-color)";

function styled(tag, style) {
  const element = document.createElement(tag);
  element.style.cssText = style;
  return element;
}

export default function ({ data, parentElement }) {
  const button = styled(
    "button",
    "font: inherit; color: var(--st-text-color); background: var(--st-background-color); cursor: pointer; " +
      "border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius); padding: 0.4rem 0.75rem",
  );
  const shown = styled("div", "margin-top: 0.5rem");
  button.textContent = LABEL;
  button.onclick = async () => {
    try {
      await navigator.clipboard.writeText(data.text); // undefined where the page is neither local nor behind HTTPS
      button.textContent = "Copied";
      shown.replaceChildren();
    } catch {
      const field = styled("textarea", FIELD);
      field.readOnly = true;
      field.value = data.text;
      shown.replaceChildren("The browser refused to copy. Copy it from here:", field);
      field.select();
    }
  };
  parentElement.replaceChildren(button, shown);
}
