// What the search box finds while one types: arrows move through it, Escape and a step elsewhere put it away.
(() => {
  const box = document.getElementById("q");
  const form = box?.form;
  if (!form) return;
  const found = () => [...form.querySelectorAll(".ahead__hit")];
  const close = () => form.querySelector(".ahead")?.replaceChildren();

  form.addEventListener("keydown", (event) => {
    const hits = found();
    if (!hits.length) return;
    const at = hits.indexOf(document.activeElement); // -1: in the box itself
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) {
      event.preventDefault();
      const next = Math.min(at + steps[event.key], hits.length - 1);
      (next < 0 ? box : hits[next]).focus();
    } else if (event.key === "Escape") {
      event.preventDefault();
      close();
      box.focus();
    }
  });
  form.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !form.contains(event.relatedTarget)) close();
  });
  document.addEventListener("click", (event) => form.contains(event.target) || close());
  // What was asked for before the box was emptied or put away is not shown any more.
  form.addEventListener("htmx:after:swap", () => document.activeElement === document.body && box.focus());
})();
