// Charts: figures come as JSON, name their colours by the tokens of css/tokens.css, and are drawn in place. They follow
// each refresh of the page and the viewer's theme.
(() => {
  const options = { displayModeBar: false, responsive: true };

  function coloured(value, style) {
    if (typeof value === "string") return value.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    if (Array.isArray(value)) return value.map((item) => coloured(item, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, coloured(item, style)]));
  }

  // The server's times are UTC; people read their own.
  function local(x) {
    const at = new Date(`${x.replace(" ", "T")}Z`);
    return isNaN(at) ? x : new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16).replace("T", " ");
  }

  function localised({ data, layout }) {
    for (const trace of data) trace.x = trace.x.map(local);
    for (const note of layout.annotations ?? []) note.x = local(note.x);
    layout.xaxis.range = layout.xaxis.range.map(local);
    layout.xaxis.hoverformat = layout.xaxis.hoverformat.replace(" UTC", "");
  }

  // Nothing but zeros looks like a chart that did not load.
  function noteNothing({ data, layout }) {
    if (data.some((trace) => trace.y.some((y) => y))) return;
    const note = { text: "none in this range", x: 0.5, y: 0.5, xref: "paper", yref: "paper", showarrow: false };
    layout.annotations = [{ ...note, font: { color: "var(--ink-faint)" } }];
  }

  async function draw() {
    const host = document.querySelector("[data-figures]");
    const answer = await fetch(host.dataset.figures, { headers: { Accept: "application/json" } });
    if (!answer.ok) return document.documentElement.classList.add("lost");
    const figures = await answer.json();
    const style = getComputedStyle(document.documentElement);
    for (const element of document.querySelectorAll("[data-chart]")) {
      const figure = figures[element.dataset.chart];
      if (!figure) continue;
      localised(figure);
      noteNothing(figure);
      await Plotly.react(element, coloured(figure.data, style), coloured(figure.layout, style), options);
    }
  }

  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.addEventListener("htmx:after:swap", (event) => event.target.closest?.("#overview-figures") && draw());
})();
