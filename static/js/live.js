// Parts that refresh themselves ([data-live]) wait while nobody looks, and while somebody works in them. The table beside a
// chart (.twin) stays open by itself.
(() => {
  const root = document.documentElement;

  function busy(part) {
    const selected = document.getSelection();
    return (
      document.hidden ||
      (selected && !selected.isCollapsed && part.contains(selected.anchorNode)) ||
      part.querySelector(":checked, dialog[open], details[open]:not(.twin)") !== null ||
      (part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"))
    );
  }

  document.addEventListener("htmx:before:request", (event) => {
    const part = event.target.closest?.("[data-live]");
    if (part && part === event.detail.ctx.sourceElement && busy(part)) event.preventDefault();
  });

  for (const trouble of ["htmx:response:error", "htmx:error"]) {
    document.addEventListener(trouble, () => root.classList.add("lost"));
  }
  document.addEventListener("htmx:after:swap", () => root.classList.remove("lost"));
})();

// A choice that is a whole form sends it.
document.addEventListener("change", (event) => event.target.matches("[data-submit]") && event.target.form.submit());
