// Copy buttons: the text beside them goes to the clipboard, and the button says so for a moment.
(() => {
  // Where the page did not come over TLS, browsers have no clipboard of their own to offer.
  async function copy(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button || button.classList.contains("done")) return;
    await copy(button.dataset.copy);
    const label = button.getAttribute("aria-label");
    button.classList.add("done");
    button.setAttribute("aria-label", "Copied");
    button.focus();
    setTimeout(() => {
      button.classList.remove("done");
      button.setAttribute("aria-label", label);
    }, 1500);
  });
})();
