// Rows that are selected to be decided together: all of a page at once, and how many they are.
(() => {
  const boxes = () => [...document.querySelectorAll("input[name=pick]")];

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-pick-all]")) {
      for (const box of boxes()) box.checked = event.target.checked;
    }
    if (!event.target.matches("[data-pick-all], input[name=pick]")) return;
    const picked = boxes().filter((box) => box.checked).length;
    for (const told of document.querySelectorAll("[data-picked]")) told.textContent = picked ? ` (${picked})` : "";
    for (const all of document.querySelectorAll("[data-pick-all]")) all.checked = picked > 0 && picked === boxes().length;
  });
})();
