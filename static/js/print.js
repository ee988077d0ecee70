// The print button. Without JavaScript the browser's own menu prints the same page.
document.addEventListener("click", (event) => event.target.closest("[data-print]") && window.print());
