// Charts: figures come as JSON, name their colours by the tokens of css/tokens.css, and are drawn in place. They follow
// each refresh of the page and the viewer's theme. The library is asked for only when the page stands.
(() => {
  const options = { displayModeBar: false, responsive: true };
  const host = () => document.querySelector("[data-figures]");
  let library = null;

  function load() {
    library ??= new Promise((done, failed) => {
      const script = document.createElement("script");
      script.src = host().dataset.plotly;
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    });
    return library;
  }

  function coloured(value, style) {
    if (typeof value === "string") return value.replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
    if (Array.isArray(value)) return value.map((item) => coloured(item, style));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, coloured(item, style)]));
  }

  // Nothing but zeros looks like a chart that did not load.
  function noteNothing({ data, layout }) {
    if (data.some((trace) => trace.meta !== "band" && trace.y.some((y) => y))) return;
    const note = { text: "none in this range", x: 0.5, y: 0.5, xref: "paper", yref: "paper", showarrow: false, bgcolor: "var(--ground)" };
    layout.annotations = [...(layout.annotations ?? []).filter((one) => one.yref === "paper"), { ...note, font: { color: "var(--ink-faint)" } }];
  }

  // A click on a point opens the sends behind it.
  function follow(element, event) {
    const point = event.points.find((one) => typeof one.customdata === "string");
    if (!point) return;
    const { bucket_seconds: length, behind } = element.layout.meta;
    const until = new Date(Date.parse(point.customdata) + length * 1000).toISOString().slice(0, 16) + "Z";
    const url = new URL(host().dataset.rows, location.href);
    for (const [name, value] of Object.entries({ behind, since: point.customdata, until })) url.searchParams.set(name, value);
    location.assign(url);
  }

  async function draw() {
    const answer = await fetch(host().dataset.figures, { headers: { Accept: "application/json" } });
    if (!answer.ok) return document.documentElement.classList.add("lost");
    const figures = await answer.json();
    await load();
    const style = getComputedStyle(document.documentElement);
    for (const element of document.querySelectorAll("[data-chart]")) {
      const figure = figures[element.dataset.chart];
      if (!figure) continue;
      noteNothing(figure);
      await Plotly.react(element, coloured(figure.data, style), coloured(figure.layout, style), options);
      if (!element.followed) element.on("plotly_click", (event) => follow(element, event));
      element.followed = true;
    }
  }

  // As seen, on the page's own ground, below its title and what its lines are.
  async function png(name) {
    const element = document.getElementById(`plot-${name}`);
    const figure = element.closest("figure");
    const { width, height } = element.getBoundingClientRect();
    const image = new Image();
    image.src = await Plotly.toImage(element, { format: "svg", width, height });
    await image.decode();
    const style = getComputedStyle(document.documentElement);
    const head = 56;
    const canvas = Object.assign(document.createElement("canvas"), { width: width * 2, height: (height + head) * 2 });
    const pen = canvas.getContext("2d");
    pen.scale(2, 2);
    pen.fillStyle = style.backgroundColor;
    pen.fillRect(0, 0, width, height + head);
    pen.fillStyle = style.color;
    pen.font = `600 15px ${style.fontFamily}`;
    pen.fillText(`${figure.querySelector("h2").textContent}, ${figure.querySelector("figcaption span").textContent}`, 8, 22);
    pen.font = `12px ${style.fontFamily}`;
    let left = 8;
    for (const key of figure.querySelectorAll(".keys li")) {
      const { fill, stroke } = getComputedStyle(key.querySelector("rect, path"));
      pen.fillStyle = stroke === "none" ? fill : stroke;
      pen.fillText(`■ ${key.textContent}`, left, 42);
      left += pen.measureText(`■ ${key.textContent}`).width + 16;
    }
    pen.drawImage(image, 0, head, width, height);
    Object.assign(document.createElement("a"), { href: canvas.toDataURL("image/png"), download: `${name}.png` }).click();
  }

  requestAnimationFrame(() => setTimeout(draw));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  document.addEventListener("htmx:after:swap", (event) => event.target.closest?.("#overview-figures") && draw());
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-png]");
    if (button && window.Plotly) png(button.dataset.png);
  });
})();
