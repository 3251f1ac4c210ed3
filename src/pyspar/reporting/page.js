"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const REACH = 22; // the largest distance, in screen pixels, between the pointer and a point
  const raised = (power) => [...String(power)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");
  const show = (x) => {
    if (x === null) return "unknown";
    const rounded = Number(x.toPrecision(4)), size = Math.abs(rounded);
    if (size === 0 || (size >= 1e-4 && size < 1e4)) return String(rounded);
    if (size >= 1e4 && size < 1e9) return rounded.toLocaleString("en-US");
    const [digits, power] = rounded.toExponential().split("e");
    return digits + "·10" + raised(Number(power));
  };
  const percent = (x) => (x === null ? "unknown" : (x === 0 || Math.abs(x - 1) < 2e-6 ? String(100 * Math.round(x)) : x < 5e-4 ? "under 0.1" : x > 0.9995 ? "over 99.9" : (100 * x).toFixed(1)) + "\u00a0%");
  // Isolates keep names in right-to-left scripts from changing the order of the surrounding text.
  const isolate = (name) => "\u2068" + name + "\u2069";
  const ALPHA_ONE = 399; // the slider position of alpha = 1
  const alphaText = (s) => (s >= ALPHA_ONE ? "1" : String(Number((1 - Math.pow(10, -s)).toFixed(Math.min(Math.ceil(s) + 2, 8)))));

  // The theme is that of the system until the button is used.
  const theme = document.getElementById("theme");
  const dark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const nameButton = () => { theme.textContent = dark() ? "Light" : "Dark"; theme.setAttribute("aria-label", "Switch to the " + (dark() ? "light" : "dark") + " theme"); theme.removeAttribute("aria-pressed"); };
  theme.addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; nameButton(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameButton);
  nameButton();

  for (const article of document.querySelectorAll("article.output")) {
    const own = data.outputs[Number(article.dataset.output)];
    const find = (selector) => article.querySelector(selector);
    const slider = find("input[type=range]");
    if (!own) continue; // the model has no directions
    const pictures = [...article.querySelectorAll(".plane svg, .inflation svg")].map((svg) => ({
      svg, circles: [...svg.querySelectorAll(".points circle")],
      rule: svg.querySelector("[id$='-rule'] path"),
      box: svg.dataset.box.split(" ").map(Number), limits: svg.dataset.limits.split(" ").map((x) => Math.log10(Number(x))),
    }));
    const isRemoved = (s) => own.points.map((p) => p[0] !== null && p[0] <= s + 1e-9);

    const draw = (s, moved) => {
      const removed = isRemoved(s);
      for (const picture of pictures) {
        picture.circles.forEach((circle, i) => circle.setAttribute("class", removed[i] ? "gone" : "kept"));
        if (picture.rule && moved) {
          // The line of the rule is keeping = removing / q. Between two marks of the slider log q is nearly linear.
          const at = Math.min(s / data.step, data.lines.length - 1), i = Math.floor(at);
          const q = data.lines[i] + (at - i) * ((data.lines[i + 1] ?? data.lines[i]) - data.lines[i]);
          const [x0, y0, x1, y1] = picture.box, [a, b, c, d] = picture.limits;
          const y = (log) => y0 + (y1 - y0) * (log - c) / (d - c);
          picture.rule.setAttribute("d", `M ${x0} ${y(a - q)} L ${x1} ${y(b - q)}`);
        }
      }
      let count = 0;
      while (count < own.steps.length && own.steps[count][0] <= s + 1e-9) count++;
      const last = count ? own.steps[count - 1] : [0, own.base, 0];
      if (moved) {
        find(".count").textContent = count.toLocaleString("en-US");
        find(".energy").textContent = percent(last[2]);
        find(".after").textContent = !own.known ? "unknown" : show(Math.sqrt(Math.max(last[1], 0)));
        find(".alpha").textContent = alphaText(s);
      }
      slider.setAttribute("aria-valuetext", `alpha ${find(".alpha").textContent}, ${count} directions removed`);
      const shares = new Map();
      own.points.forEach((p, i) => { if (removed[i]) for (const [n, share] of p[6]) shares.set(n, (shares.get(n) || 0) + share * (p[1] || 0)); });
      const all = [...shares].sort((one, other) => other[1] - one[1]), total = all.reduce((sum, [, share]) => sum + share, 0);
      const large = all.filter(([, share]) => share >= 0.05 * total).slice(0, 6);
      find(".names").textContent = (large.length ? large : all.slice(0, 3)).map(([n]) => isolate(own.names[n])).join(", ");
      article.querySelectorAll(".some").forEach((part) => { part.hidden = count === 0; });
    };
    if (slider) { // only a method with a rule has a slider
      slider.addEventListener("input", () => draw(Number(slider.value), true));
      find(".reset").addEventListener("click", () => { slider.value = own.start; draw(own.start, true); });
      draw(own.start, false);
    }

    const describe = (i) => {
      const [place, keeping, removing, inflation, energy, outside, loads] = own.points[i];
      return [
        `Direction ${i + 1}: ${percent(energy)} of the target's energy`,
        `cost of keeping ${show(keeping)}, of removing ${show(removing)}`,
        `inflation ${show(inflation)}` + (outside >= 0.005 ? `, ${percent(outside)} outside the source` : ""),
        ...(!slider ? [] : [place === null || place >= ALPHA_ONE ? "kept at every α below 1" : place > 6 ? "removed above α = 0.999999" : `removed at α = ${alphaText(place)} or above`]),
        "columns: " + loads.filter(([, share], i) => i === 0 || share >= 0.005).map(([n, share]) => `${isolate(own.names[n])} ${(100 * share).toFixed(0)}\u00a0%`).join(", "),
      ].join("\n");
    };
    for (const picture of pictures) {
      let nearest = null;
      const hideDetails = () => { if (nearest) nearest.classList.remove("near"); nearest = null; tip.hidden = true; };
      const showDetails = (event) => {
        const matrix = picture.svg.getScreenCTM();
        let best = REACH * REACH, index = -1;
        picture.circles.forEach((circle, i) => {
          const x = matrix.a * circle.cx.baseVal.value + matrix.e - event.clientX;
          const y = matrix.d * circle.cy.baseVal.value + matrix.f - event.clientY;
          if (x * x + y * y < best) { best = x * x + y * y; index = i; }
        });
        hideDetails();
        if (index < 0) return;
        nearest = picture.circles[index];
        nearest.classList.add("near");
        tip.textContent = describe(index);
        tip.hidden = false;
        const size = tip.getBoundingClientRect();
        tip.style.left = Math.max(8, Math.min(event.clientX + 14, innerWidth - size.width - 8)) + "px";
        tip.style.top = (event.clientY + size.height + 24 > innerHeight ? Math.max(8, event.clientY - size.height - 14) : event.clientY + 14) + "px";
      };
      picture.svg.addEventListener("pointermove", showDetails);
      picture.svg.addEventListener("pointerdown", showDetails);
      picture.svg.addEventListener("pointerleave", hideDetails);
      addEventListener("scroll", hideDetails, { passive: true });
    }
  }
  addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    heads.forEach((head, column) => head.querySelector("button")?.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => { const cell = row.cells[column], x = Number(cell.dataset.value ?? cell.textContent); return Number.isNaN(x) ? -Infinity : x; };
      [...body.rows].sort((one, other) => (down ? value(other) - value(one) : value(one) - value(other))).forEach((row) => body.append(row));
    }));
  }
})();
