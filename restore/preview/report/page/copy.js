
"use strict";
async function copied(node) {
  try {
    await navigator.clipboard.writeText(node.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(node);
    return document.execCommand("copy");
  }
}
for (const button of document.querySelectorAll("button[data-copies]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const done = await copied(document.getElementById(button.dataset.copies));
    button.textContent = done ? "Copied" : "Selected: copy it with the keyboard";
  });
}
