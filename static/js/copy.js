// Copy buttons: the text beside them goes to the clipboard, and the button says so for a moment.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  const label = button.getAttribute("aria-label");
  button.classList.add("done");
  button.setAttribute("aria-label", "Copied");
  setTimeout(() => {
    button.classList.remove("done");
    button.setAttribute("aria-label", label);
  }, 1500);
});
