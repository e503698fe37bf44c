// Draws a report's pictures, and makes its theme, legends and downloads work. It asks nothing of any server.
(() => {
  "use strict";
  const root = document.documentElement;
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const charts = read("longtake-charts");
  const report = read("longtake-data");
  root.classList.add("scripted");

  // Words and numbers.

  const escape = (text) => String(text).replace(/[<>&"']/g, (c) => `&#${c.charCodeAt(0)};`);
  const short = (value) => {
    if (value === null || value === undefined || !Number.isFinite(Number(value))) return "not known";
    const size = Math.abs(value);
    if (size > 0 && size < 1e-6) return Number(value).toExponential(1);
    const digits = size === 0 ? 0 : Math.floor(Math.log10(size));
    const text = Number(value).toLocaleString("en-US", {
      maximumFractionDigits: Math.min(Math.max(3 - digits, 0), 9),
      useGrouping: size >= 9999.5,
    });
    return text.replace("-", "\u2212");
  };
  // A percentile from its number of nines, with as many digits as tell it apart.
  const percentile = (nines) => {
    const value = 100 * (1 - Math.pow(10, -nines));
    return String(Number(value.toFixed(Math.max(0, Math.ceil(nines + 0.3) - 1))));
  };
  const withUnit = (text, quantity) => (quantity.unit ? `${text} ${quantity.unit}` : text);
  const quantity = (value, of) => withUnit(of.scale === "nines" ? percentile(value) : short(value), of);
  const square = (colour) => `<i style="background:${escape(colour)}"></i>`;
  const tip = (head, rows) =>
    `<div class="tip"><b>${escape(head)}</b><table>${rows
      .map(([mark, name, value]) => `<tr><td>${mark}${escape(name)}</td><td class="right">${escape(value)}</td></tr>`)
      .join("")}</table></div>`;

  // What options of a chart name by `@`.

  const functions = (chart) => ({
    number(value) {
      return short(value);
    },
    nines(value) {
      return percentile(value);
    },
    lines(items) {
      const shown = items.filter((item) => /^s\d+$/.test(item.seriesName) && item.seriesType === "line");
      if (!shown.length) return "";
      const head = `${chart.x.label} ${quantity(shown[0].value[0], chart.x)}`;
      return tip(head, shown.map((item) => [
        square(item.color), nameOf(chart, item), quantity(item.value[1], chart.y),
      ]));
    },
    heat(item) {
      const [column, row, value] = item.value;
      const x = chart.option.xAxis, y = chart.option.yAxis;
      return tip(quantity(value, chart.y), [
        ["", x.name, x.data[column]],
        ["", y.name, y.data[row]],
      ]);
    },
    radar(item) {
      const spokes = chart.option.radar.indicator;
      const share = item.seriesType === "custom";
      return tip(nameOf(chart, item), spokes.map((spoke, n) => {
        const value = item.value[n];
        const known = value === null || Number.isNaN(value) ? null : share ? value * spoke.max : value;
        const [name, rim] = spoke.name.split("\n");
        const unit = rim.split(" ").slice(1).join(" ");
        return ["", name, known === null ? "not known" : withUnit(short(known), { unit })];
      }));
    },
    bars(items) {
      const shown = items.filter((item) => item.seriesType === "bar");
      if (!shown.length) return "";
      return tip(shown[0].name, shown.map((item) => [
        square(item.color), nameOf(chart, item), quantity(item.value, chart.y),
      ]));
    },
    spread(params, api) {
      const corner = (x, y) => api.coord([api.value(x), api.value(y)]);
      return {
        type: "polygon",
        shape: { points: [corner(0, 2), corner(3, 5), corner(3, 4), corner(0, 1)] },
        style: { fill: api.visual("color"), opacity: 0.16 },
      };
    },
    error(params, api) {
      const [group, low, high, index, count] = [0, 1, 2, 3, 4].map((n) => api.value(n));
      const layout = api.barLayout({ count, barGap: "0%", barCategoryGap: "28%", barMaxWidth: 64 })[index];
      const [x, bottom] = api.coord([group, low]);
      const top = api.coord([group, high])[1];
      const middle = x + layout.offsetCenter, half = Math.min(4, layout.width / 3);
      const line = (x1, y1, x2, y2) => ({
        type: "line", shape: { x1, y1, x2, y2 }, style: { stroke: api.visual("color"), lineWidth: 1.25 },
      });
      return {
        type: "group",
        children: [
          line(middle, bottom, middle, top),
          line(middle - half, bottom, middle + half, bottom),
          line(middle - half, top, middle + half, top),
        ],
      };
    },
    ring(params, api) {
      // The radar's own place and size.
      const width = api.getWidth(), height = api.getHeight();
      const series = chart.option.series[params.seriesIndex];
      const shares = series.data[0];
      const colour = api.visual("color");
      const at = (n) => {
        const angle = (2 * Math.PI * n) / shares.length, r = chart.radius * shares[n];
        return [width / 2 + r * Math.sin(angle), height / 2 - r * Math.cos(angle)];
      };
      const children = [];
      shares.forEach((share, n) => {
        const next = (n + 1) % shares.length;
        if (share === null) return;
        const [x, y] = at(n);
        children.push({ ...marker(series.symbol, x, y), style: { fill: colour } });
        if (shares[next] === null) return;
        const [x2, y2] = at(next);
        const lineDash = Array.isArray(series.lineStyle.type) ? series.lineStyle.type : undefined;
        children.push({
          type: "line", shape: { x1: x, y1: y, x2, y2 }, style: { stroke: colour, lineWidth: 2, lineDash },
        });
      });
      return { type: "group", children };
    },
  });

  // A marker as the lines have them, as a shape of its own.
  const marker = (symbol, x, y) => {
    if (symbol === "circle") return { type: "circle", shape: { cx: x, cy: y, r: 3.5 } };
    if (symbol === "rect") return { type: "rect", shape: { x: x - 3.5, y: y - 3.5, width: 7, height: 7 } };
    const points = symbol === "triangle"
      ? [[x, y - 3.5], [x + 3.5, y + 3.5], [x - 3.5, y + 3.5]]
      : [[x, y - 3.5], [x + 3.5, y], [x, y + 3.5], [x - 3.5, y]];
    return { type: "polygon", shape: { points } };
  };

  const nameOf = (chart, item) => chart.names[Number(item.seriesName.slice(1))];

  // Options with the theme's colours and the functions put in.
  const dressed = (chart) => {
    const style = getComputedStyle(root), known = functions(chart);
    const dress = (key, value) => {
      if (typeof value === "string" && value[0] === "@") {
        if (/color$/i.test(key)) return style.getPropertyValue(`--${value.slice(1)}`).trim();
        if (key === "formatter" || key === "renderItem") return known[value.slice(1)];
      }
      if (Array.isArray(value)) return value.map((item) => dress("", item));
      if (value && typeof value === "object") {
        return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, dress(k, v)]));
      }
      return value;
    };
    return dress("", chart.option);
  };

  // Numbers stand in a heat map's cells only where they fit.
  const fitNumbers = (chart, shown) => {
    const series = chart.option.series.find((one) => one.type === "heatmap");
    if (!series) return;
    const longest = Math.max(0, ...series.data.map((item) => item.label.formatter.length));
    const room = (shown.getWidth() - 80) / chart.option.xAxis.data.length;
    const size = room >= longest * 6.4 + 6 ? 11.5 : 9;
    shown.setOption({ series: [{ label: { show: room >= longest * size * 0.56 + 2, fontSize: size } }] });
  };

  // On a narrow page a chart keeps its room for data: the names of a radar's spokes go closer.
  const fit = (chart, shown) => {
    fitNumbers(chart, shown);
    if (chart.option.radar) {
      const narrow = shown.getWidth() < 560, room = narrow ? 76 : 160;
      chart.radius = Math.min(shown.getHeight() * 0.36, shown.getWidth() / 2 - room - 14);
      const axisName = { fontSize: narrow ? 10 : 11.5, width: room, overflow: "break" };
      shown.setOption({ radar: { radius: chart.radius, axisName } });
    }
  };

  const places = [...document.querySelectorAll(".chart")];
  const draw = () => {
    places.forEach((place) => {
      const chart = charts[Number(place.dataset.chart)];
      const before = echarts.getInstanceByDom(place);
      const hidden = before ? before.getOption().legend : null;
      if (before) before.dispose();
      const shown = echarts.init(place, null, { renderer: "canvas", devicePixelRatio: window.devicePixelRatio });
      const option = dressed(chart);
      if (hidden && hidden[0] && option.legend) option.legend.selected = hidden[0].selected;
      shown.setOption(option);
      fit(chart, shown);
    });
  };

  // Theme.

  const button = document.querySelector(".theme");
  const wantsDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : wantsDark.matches);
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Show in ${isDark() ? "light" : "dark"} colours`);
  };
  const retheme = () => {
    label();
    draw();
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    retheme();
  });
  wantsDark.addEventListener("change", retheme);

  // Legends.

  document.querySelectorAll(".legend button").forEach((entry) => {
    entry.addEventListener("click", () => {
      const place = entry.closest(".picture").querySelector(".chart");
      const on = entry.getAttribute("aria-pressed") !== "true";
      entry.setAttribute("aria-pressed", String(on));
      echarts.getInstanceByDom(place).dispatchAction({
        type: on ? "legendSelect" : "legendUnSelect", name: entry.dataset.series,
      });
    });
  });

  // Downloads.

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  // The picture with its title, which the page leaves out of view.
  const svgOf = (figure) => {
    const svg = figure.querySelector(".static svg").cloneNode(true);
    const [width, height] = ["width", "height"].map((side) => Number(svg.querySelector(".paper").getAttribute(side)));
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("width", width / 4);
    svg.setAttribute("height", height / 4);
    const text = new XMLSerializer().serializeToString(svg);
    return { blob: new Blob([text], { type: "image/svg+xml" }), width: width / 2, height: height / 2 };
  };
  const savePng = (figure, name) => {
    const { blob, width, height } = svgOf(figure);
    const image = new Image(), url = URL.createObjectURL(blob);
    image.onload = () => {
      const canvas = document.createElement("canvas");
      canvas.width = width;
      canvas.height = height;
      canvas.getContext("2d").drawImage(image, 0, 0, width, height);
      URL.revokeObjectURL(url);
      canvas.toBlob((png) => save(png, name), "image/png");
    };
    image.src = url;
  };
  const field = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  const named = (axis) => (axis.unit ? `${axis.label} [${axis.unit}]` : axis.label);
  // Every value of a picture, a row each.
  const rowsOf = ({ lines, heat, radar, bars }) => {
    if (lines) {
      const rows = lines.series.flatMap((one) => one.points.map(([x, y]) => [one.name, x, y]));
      return [["series", named(lines.x), named(lines.y)], ...rows];
    }
    if (heat) {
      const rows = heat.y.flatMap((y, row) => heat.x.map((x, column) => [y, x, (heat.values[row] || [])[column]]));
      return [[heat.y_title, heat.x_title, named(heat.value)], ...rows];
    }
    if (radar) {
      const rows = radar.rings.flatMap((ring) => radar.spokes.map((spoke, n) => [ring.name, spoke.name, spoke.unit, ring.values[n]]));
      return [["ring", "spoke", "unit", "value"], ...rows];
    }
    const rows = bars.series.flatMap((one) => bars.groups.map((group, n) => {
      const bar = one.values[n] || {};
      return [one.name, group, bar.value, bar.low, bar.high];
    }));
    return [["series", bars.x_title, named(bars.y), "low", "high"], ...rows];
  };
  const pictures = report.sections.flatMap((section) => section.pictures);
  document.querySelectorAll(".picture").forEach((figure, n) => {
    const stem = figure.dataset.file;
    const on = (kind, act) => figure.querySelector(`.downloads [data-kind="${kind}"]`).addEventListener("click", act);
    on("svg", () => save(svgOf(figure).blob, `${stem}.svg`));
    on("png", () => savePng(figure, `${stem}.png`));
    on("csv", () => {
      const text = rowsOf(pictures[n].kind).map((row) => row.map(field).join(",") + "\r\n").join("");
      save(new Blob([text], { type: "text/csv" }), `${stem}.csv`);
    });
  });

  label();
  draw();
  let sharpness = window.devicePixelRatio;
  const watcher = new ResizeObserver((entries) => entries.forEach(({ target }) => {
    // Another screen or zoom: what was drawn for the one before would be blurred.
    if (sharpness !== window.devicePixelRatio) {
      sharpness = window.devicePixelRatio;
      draw();
    }
    const shown = echarts.getInstanceByDom(target);
    if (!shown || !target.clientWidth) return;
    shown.resize();
    fit(charts[Number(target.dataset.chart)], shown);
  }));
  places.forEach((place) => watcher.observe(place));
})();
