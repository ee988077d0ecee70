// The keyboard: / searches, j and k move through rows, t opens a row's trace, c copies the reply, ? shows this list.
(() => {
  const rows = () => [...document.querySelectorAll("a[data-row]")].filter((row) => row.offsetParent);

  function move(by) {
    const all = rows();
    const at = all.indexOf(document.activeElement);
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  const actions = {
    "/": () => document.getElementById("q")?.select(),
    "?": () => document.getElementById("keys")?.showModal(),
    j: () => move(1),
    k: () => move(-1),
    c: () => document.querySelector("[data-copy-first]")?.click(),
    t: () => {
      const row = document.activeElement?.closest("tr, li")?.querySelector("[data-trace]") ?? document.activeElement;
      (row?.matches?.("a[data-row], [data-trace]") ? row : rows()[0])?.click();
    },
  };

  document.addEventListener("keydown", (event) => {
    // An empty field that has the focus by itself gives / to the search box.
    const untouched = event.key === "/" && event.target.matches("#who") && !event.target.value;
    const typing = !untouched && event.target.closest("input, textarea, select, dialog[open], [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  });

  // On a phone navigation and tabs are wider than the screen: the place where one is stands in them.
  for (const place of document.querySelectorAll(".nav [aria-current], .tabs [aria-current]"))
    place.scrollIntoView({ inline: "center", block: "nearest" });

  // The menu of the person closes by Escape and by a click elsewhere.
  const menu = document.querySelector("details.person");
  document.addEventListener("click", (event) => menu?.contains(event.target) || menu?.removeAttribute("open"));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu?.open) return;
    menu.removeAttribute("open");
    menu.querySelector("summary").focus();
  });
})();
