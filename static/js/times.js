// Times in the viewer's own zone. The server writes UTC, which stays on hover; ages are kept in step with the clock.
(() => {
  const two = (number) => String(number).padStart(2, "0");
  const month = new Intl.DateTimeFormat("en", { month: "short" });
  const steps = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

  const day = (at) => `${at.getDate()} ${month.format(at)} ${at.getFullYear()}`;

  function local(at, clockOnly) {
    const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
    if (clockOnly) return clock;
    return `${day(at)}, ${clock}`;
  }

  function age(at) {
    const seconds = (Date.now() - at) / 1000;
    if (Math.abs(seconds) < 1) return "now";
    const [size, unit] = steps.find(([size]) => Math.abs(seconds) >= size);
    const span = `${Math.floor(Math.abs(seconds) / size)} ${unit}`;
    return seconds > 0 ? `${span} ago` : `in ${span}`;
  }

  function tell(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function refresh(root) {
    for (const element of root.querySelectorAll("time[datetime]"))
      tell(element, local(new Date(element.dateTime), "clock" in element.dataset));
    for (const element of root.querySelectorAll("[data-ago]")) tell(element, age(new Date(element.dataset.ago)));
    for (const element of root.querySelectorAll("[data-day]")) tell(element, day(new Date(element.dataset.day)));
  }

  const zone = document.querySelector("[data-zone]");
  if (zone) zone.textContent = Intl.DateTimeFormat().resolvedOptions().timeZone;
  refresh(document);
  setInterval(() => document.hidden || refresh(document), 10_000);
  document.addEventListener("htmx:after:swap", () => refresh(document));
})();
